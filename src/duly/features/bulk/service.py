"""Bulk actions: preview what one would change, and start it as a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import SYSTEM_ORG, Actor
from duly.core.states import Status
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.bulk.job import declare
from duly.features.bulk.plan import Verb, filters_to_json, lists_to_change, parse_verb
from duly.features.jobs.filter import JobFilterKeywords, parse_filter
from duly.features.jobs.listing import count_jobs
from duly.features.pagination import Count
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.job import Call

_MAX_COUNT = 10_000
_MAX_MATCHED_COUNT = 3_000
_MAX_UNCHANGED_COUNT = 1_000


@dataclass(frozen=True, slots=True)
class Impact:
    """What a bulk action would change.

    Counts stop at 10,000 per status, at 3,000 if each job has to be read; of unchanged jobs at 1,000.
    """

    verb: Verb
    jobs: Count
    """The jobs that it changes; system jobs of Duly only if the actor is an operator."""
    by_status: Mapping[Status, Count]
    """The same by current status."""
    left: Mapping[Status, Count]
    """Jobs that match and stay unchanged because of their status."""


class Bulk:
    """Cancels, replays or discards all jobs that match, whether three or a hundred thousand."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def impact(
        self, org_id: UUID | str | None, verb: Verb | str, filters: JobFilterKeywords, *, actor: Actor
    ) -> Impact:
        """Return what a bulk action would change. Without an org, in all orgs, for operators."""
        verb, job_filter = parse_verb(verb), parse_filter(_optional_org(org_id), filters)
        changed: dict[Status, Count] = {}
        left: dict[Status, Count] = {}
        for status in job_filter.statuses:
            of_status = job_filter._replace(statuses=(status,))
            lists = lists_to_change(of_status, verb, actor)
            if lists:
                limit = _MAX_MATCHED_COUNT if lists[0].needs_match else _MAX_COUNT
                changed[status] = await count_jobs(self._app, lists[0], limit)
            else:
                left[status] = await count_jobs(self._app, of_status, _MAX_UNCHANGED_COUNT)
        return Impact(verb, _sum(changed), _nonzero(changed), _nonzero(left))

    async def start(
        self,
        org_id: UUID | str | None,
        verb: Verb | str,
        filters: JobFilterKeywords,
        *,
        actor: Actor,
        reason: str,
        per_second: float | None = None,
    ) -> Handle[Any]:
        """Start a job `duly.bulk` that changes all matching jobs that exist by now.

        Without an org, the job belongs to Duly's own org and changes the jobs of all orgs. `per_second`
        limits the replays that become due. While the same action runs, its job is returned.
        """
        org, request, verb = _optional_org(org_id), change_request(actor, reason), parse_verb(verb)
        if per_second is not None:
            _check_rate(verb, per_second)
        expected = (await self.impact(org, verb, filters, actor=actor)).jobs
        stored_filters = filters_to_json(filters)
        identity = {"verb": verb.value, "wanted": stored_filters, "everywhere": org is None}
        job = declare(self._app)
        owner = org or SYSTEM_ORG

        async def enqueue(conn: Connection) -> Handle[Any]:
            await check_org_exists(conn, owner)
            call: Call[Any] = job.options(org_id=owner, actor=actor, run_identity=identity).call(
                verb=verb,
                filters=stored_filters,
                all_orgs=org is None,
                reason=reason,
                per_second=per_second,
                expected=expected.count,
            )
            [handle] = await self._app.enqueue_many([call], conn=conn)
            if handle.created:
                await record_entry(conn, request, owner, "job.bulk_requested", str(handle.job_id), **identity)
            return handle

        return await audited_transaction(self._app, enqueue)


def _optional_org(org_id: UUID | str | None) -> UUID | None:
    return None if org_id is None else org_uuid(org_id)


def _check_rate(verb: Verb, per_second: float) -> None:
    if verb is not Verb.REPLAY:
        raise ContractError(f"only replays have a rate, not {verb}", field="per_second", fix="leave it out")
    if type(per_second) not in (int, float) or not 0.001 <= per_second <= 10_000:
        raise ContractError(f"{per_second!r} is out of range", field="per_second", fix="use 0.001 to 10000")


def _sum(counts: Mapping[Status, Count]) -> Count:
    return Count(
        count=sum(one.count for one in counts.values()), at_least=any(one.at_least for one in counts.values())
    )


def _nonzero(counts: Mapping[Status, Count]) -> dict[Status, Count]:
    return {status: one for status, one in counts.items() if one.count or one.at_least}
