"""One change for many jobs, as operators ask for it."""

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
from duly.features.audit.entries import ChangeRequest, audited_transaction, change_request, record_entry
from duly.features.bulk.job import declare
from duly.features.bulk.plan import JOB_TYPE, Verb, by_status, stored, touched, verb_of
from duly.features.jobs.filter import Filters, choose
from duly.features.jobs.walk import count
from duly.features.pagination import Count
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.job import Call

_MOST = 10_000
_MOST_READ = 3_000
_MOST_LEFT = 1_000


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change of many jobs would do.

    In each status 10,000 jobs are counted and no more, 3,000 if each has to be read; of what is left, 1,000.
    """

    verb: Verb
    jobs: Count
    """How many it is about; those of Duly's own are not, unless who asks runs the installation."""
    by_status: Mapping[Status, Count]
    """The same by what they are now."""
    left: Mapping[Status, Count]
    """Those that match, and are left alone because of what they are."""


class Bulk:
    """Cancels, replays or discards every job that fits, whether three or a hundred thousand."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def impact(
        self, org_id: UUID | str | None, verb: Verb | str, wanted: Filters, *, actor: Actor
    ) -> Impact:
        """What it would do. Without an org, with the jobs of all of them: for who runs the installation."""
        what, choice = verb_of(verb), choose(_whose(org_id), wanted)
        about: dict[Status, Count] = {}
        left: dict[Status, Count] = {}
        for status, same in by_status(choice).items():
            lists = touched(same, what, actor)
            if lists:
                about[status] = await count(self._app, lists[0], _MOST_READ if lists[0].narrow else _MOST)
            else:
                left[status] = await count(self._app, same, _MOST_LEFT)
        return Impact(what, _sum(about), _nonzero(about), _nonzero(left))

    async def start(
        self,
        org_id: UUID | str | None,
        verb: Verb | str,
        wanted: Filters,
        *,
        actor: Actor,
        reason: str,
        per_second: float | None = None,
    ) -> Handle[Any]:
        """Have it done to all that fit and exist by now, as a job `duly.bulk` of the org.

        Without an org it is one of Duly's own org, and goes through all. With `per_second`, no more replays
        than that come due. Asked again while it is under way, it is the same job.
        """
        whose, who, what = _whose(org_id), change_request(actor, reason), verb_of(verb)
        choose(whose, wanted)
        if per_second is not None:
            _check_pace(what, per_second)
        expected = (await self.impact(whose, what, wanted, actor=actor)).jobs
        order = {"verb": what.value, "wanted": stored(wanted), "everywhere": whose is None}
        payload = {**order, "reason": reason, "per_second": per_second, "expected": expected.count}
        return await audited_transaction(
            self._app, lambda conn: self._ask(conn, who, whose or SYSTEM_ORG, order, payload)
        )

    async def _ask(
        self,
        conn: Connection,
        who: ChangeRequest,
        org_id: UUID,
        order: dict[str, Any],
        payload: dict[str, Any],
    ) -> Handle[Any]:
        await check_org_exists(conn, org_id)
        declare(self._app)
        job = self._app.registry.get(JOB_TYPE).options(org_id=org_id, actor=who.actor, run_identity=order)
        call: Call[Any] = job.call(**payload)
        [handle] = await self._app.enqueue_many([call], conn=conn)
        if handle.created:
            await record_entry(conn, who, org_id, "job.bulk_requested", str(handle.job_id), **order)
        return handle


def _whose(org_id: UUID | str | None) -> UUID | None:
    return None if org_id is None else org_uuid(org_id)


def _check_pace(verb: Verb, per_second: float) -> None:
    if verb is not Verb.REPLAY:
        raise ContractError(f"only replays are paced, not {verb}", field="per_second", fix="leave it out")
    if type(per_second) not in (int, float) or not 0.001 <= per_second <= 10_000:
        raise ContractError(f"{per_second!r} is out of range", field="per_second", fix="use 0.001 to 10000")


def _sum(counts: Mapping[Status, Count]) -> Count:
    return Count(
        count=sum(one.count for one in counts.values()), at_least=any(one.at_least for one in counts.values())
    )


def _nonzero(counts: Mapping[Status, Count]) -> dict[Status, Count]:
    return {status: one for status, one in counts.items() if one.count or one.at_least}
