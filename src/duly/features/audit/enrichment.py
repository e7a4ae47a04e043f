"""The audit enrichment job: writes the differences of two versions of a record to the audit trail.

It writes with a role that may append entries for one org and nothing else: the database itself keeps the job
away from the records it describes.
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
from duly.features.audit.diff import Comparison, compare, mask_secrets
from duly.features.audit.entries import OWN_TARGETS
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.job import Call
from duly.jobs.request_context import current_context

JOB_TYPE = "duly.enrich_audit"
_LOCALES = ("de", "en")
_TARGET_TYPE = re.compile(r"[a-z][a-z0-9_]*")


class Versions(NamedTuple):
    """Two versions of a record, and how to describe their differences."""

    target_type: str
    target_id: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    reason: str | None
    locale: str
    names: Mapping[str, str]
    hide: Collection[str]


def declare(app: App) -> None:
    """Declare the job type, unless the application has it."""
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
        # In a thread: the event loop renews the leases of all jobs of the worker.
        comparison = await asyncio.to_thread(compare, before, after, locale=locale, names=names)
        if comparison.changes:
            await _write_entry(app, target_type, target_id, reason, comparison)
        return {"changes": len(comparison.changes) + comparison.more}


async def enrichment(app: App, versions: Versions, options: dict[str, Any]) -> Call[Any]:
    """Return the call of the job. Its payload has masks in place of secrets."""
    _check(versions)
    declare(app)
    # In a thread: every text is searched for secrets, and the service has other requests.
    return await asyncio.to_thread(_call, app, versions, options)


def _call(app: App, versions: Versions, options: dict[str, Any]) -> Call[Any]:
    before, after = mask_secrets(versions.before, versions.after, hide=frozenset(versions.hide))
    values = {**versions._asdict(), "before": before, "after": after, "names": dict(versions.names)}
    del values["hide"]
    return app.registry.get(JOB_TYPE).options(**options).call(**values)


def check_target(target_type: str, field: str = "target_type") -> None:
    """Raise if a target type is malformed, or one of Duly's own."""
    if not _TARGET_TYPE.fullmatch(target_type):
        raise ContractError(
            f"{target_type!r} is not a target type", field=field, fix="use lower_case words, as in invoice"
        )
    if target_type in OWN_TARGETS:
        raise ContractError(
            f"{target_type!r} is a target type of Duly", field=field, fix="use another word, as in invoice"
        )


def _check(versions: Versions) -> None:
    check_target(versions.target_type)
    size = sum(
        len(json.dumps(version, ensure_ascii=False, default=str))
        for version in (versions.before, versions.after)
    )
    if size > MAX_PAYLOAD_BYTES:
        raise ContractError(
            f"both versions have {size} characters, {MAX_PAYLOAD_BYTES} allowed",
            field="after",
            fix="pass the changed part",
        )
    if versions.locale.partition("-")[0] not in _LOCALES:
        raise ContractError(
            f"unsupported locale {versions.locale!r}", field="locale", fix=f"use one of {_LOCALES}"
        )


async def _write_entry(
    app: App, target_type: str, target_id: str, reason: str | None, comparison: Comparison
) -> None:
    """Write one entry per job, whichever attempt writes it: it has the id and the time of the job."""
    job = await _current_job(app)
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
            detail=comparison.detail(),
        )


async def _current_job(app: App) -> JobSnapshot:
    context = current_context()
    assert context.org_id is not None
    assert context.parent_id is not None
    async with app.tenant_session(context.org_id) as conn:
        job = await job_store.read_job(conn, context.org_id, context.parent_id)
    if job is None:
        raise LeaseLost("the job no longer exists", fix="stop")
    return job
