"""The audit enrichment job: what differs between two versions of a record, said in the audit trail only.

It writes as a role that may append entries for one org and do nothing else, so the database itself keeps it
away from everything that it is about.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from duly.core.errors import ContractError, LeaseLost
from duly.core.job import Actor, JobSnapshot
from duly.core.payload import MAX_PAYLOAD_BYTES
from duly.core.policy import Category
from duly.features.audit.diff import Difference, compare, veil
from duly.features.audit.entries import OWN_TARGETS
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.job import Call
from duly.jobs.request_context import current_context

JOB_TYPE = "duly.enrich_audit"
_LOCALES = ("de", "en")
_TYPE = re.compile(r"[a-z][a-z0-9_]*")


class Versions(NamedTuple):
    """What was changed, and how to say it."""

    target_type: str
    target_id: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    reason: str | None
    locale: str
    names: Mapping[str, str]
    hide: Collection[str]


def declare(app: App) -> None:
    """Add the job type to an application; once."""
    if JOB_TYPE in app.registry:
        return

    @app.job(JOB_TYPE, category=Category.AUDIT)
    async def enrich_audit(
        target_type: str,
        target_id: str,
        before: dict[str, Any],
        after: dict[str, Any],
        reason: str | None,
        locale: str,
        names: dict[str, str],
    ) -> dict[str, int]:
        # Not on the loop, where everybody else's leases are kept.
        found = await asyncio.to_thread(compare, before, after, locale=locale, names=names)
        if found.changes:
            await _append(app, target_type, target_id, reason, found)
        return {"changes": len(found.changes) + found.more}


async def enrichment(app: App, versions: Versions, options: dict[str, Any]) -> Call[Any]:
    """The call that has two versions compared. What is secret does not even get into its payload."""
    _check(versions)
    declare(app)
    # Every text is searched for secrets: a service has others to serve meanwhile.
    return await asyncio.to_thread(_call, app, versions, options)


def _call(app: App, versions: Versions, options: dict[str, Any]) -> Call[Any]:
    before, after = veil(versions.before, versions.after, hide=frozenset(versions.hide))
    job = app.registry.get(JOB_TYPE).options(**options)
    return job.call(
        target_type=versions.target_type,
        target_id=versions.target_id,
        before=before,
        after=after,
        reason=versions.reason,
        locale=versions.locale,
        names=dict(versions.names),
    )


def check_target(target_type: str, field: str = "target_type") -> None:
    """Refuse what is no kind of thing, or what Duly itself writes about."""
    if not _TYPE.fullmatch(target_type):
        raise ContractError(f"{target_type!r} is no kind of thing", field=field, fix="use lower_case words")
    if target_type in OWN_TARGETS:
        raise ContractError(
            f"entries about a {target_type} are Duly's own",
            field=field,
            fix="use a name of your own, as invoice",
        )


def _check(versions: Versions) -> None:
    check_target(versions.target_type)
    size = sum(
        len(json.dumps(one, ensure_ascii=False, default=str)) for one in (versions.before, versions.after)
    )
    if size > MAX_PAYLOAD_BYTES:
        raise ContractError(
            f"both versions have {size} characters, {MAX_PAYLOAD_BYTES} allowed",
            field="after",
            fix="pass the part that was changed",
        )
    if versions.locale.partition("-")[0] not in _LOCALES:
        raise ContractError(f"no words for {versions.locale!r}", field="locale", fix=f"one of {_LOCALES}")


async def _append(app: App, target_type: str, target_id: str, reason: str | None, found: Difference) -> None:
    """One entry of the job, whichever attempt writes it: it has the job's id, and the job's time."""
    job = await _this_job(app)
    async with (await app.resources()).database.auditor(job.org_id) as conn:
        await job_store.record_audit_entry(
            conn,
            entry_id=job.job_id,
            occurred_at=job.created_at,
            org_id=job.org_id,
            actor=Actor(job.actor_type, job.actor_id),
            action=f"{target_type}.changed",
            target_type=target_type,
            target_id=target_id,
            reason=reason,
            request_id=job.request_id,
            correlation_id=job.correlation_id,
            detail=found.detail(),
        )


async def _this_job(app: App) -> JobSnapshot:
    here = current_context()
    assert here.org_id is not None
    assert here.parent_id is not None
    async with app.tenant_session(here.org_id) as conn:
        job = await job_store.read_job(conn, here.org_id, here.parent_id)
    if job is None:
        raise LeaseLost("the job is gone", fix="stop")
    return job
