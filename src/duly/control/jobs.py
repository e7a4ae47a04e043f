"""Jobs as operators see them: lists, one with its whole story, a new one by name, and the end of one."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Unpack
from uuid import UUID

from duly.client.app import App
from duly.client.context import as_uuid, checked_text, surroundings
from duly.client.handle import Handle
from duly.client.job import Call
from duly.client.options import Choices, Options
from duly.control.asked import asked, check_known, org
from duly.control.explain import MOST_BEFORE, explain
from duly.control.paging import cursor, page_size, place
from duly.model.errors import AlreadyFinished, ContractError, MissingField, UnknownJob
from duly.model.freshness import Assessment
from duly.model.job import Actor, JobEvent, JobSnapshot
from duly.model.outcome import CanceledBy
from duly.model.states import Status
from duly.store import audit, jobs, listing, suspects
from duly.store.listing import NEWEST, Attempt, Choice, Look, Place
from duly.store.pool import Connection
from duly.store.session import retrying

_AT_ONCE = 1_000
_LOOKS = 10
_STORY = 100


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs; `after` asks for those that follow, and is None at the end.

    With a filter that no index serves, so many jobs are looked at and no more: a page may then be short, even
    empty, although others follow.
    """

    jobs: tuple[JobSnapshot, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job with its story: the last attempts and events, and why it is where it is."""

    job: JobSnapshot
    attempts: tuple[Attempt, ...]
    events: tuple[JobEvent, ...]
    explanation: tuple[str, ...]
    freshness: Assessment
    """Whether it can still be believed, with the evidence."""


class Jobs:
    """The jobs of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def submit(
        self, job_type: str, payload: Mapping[str, Any], **choices: Unpack[Choices]
    ) -> Handle[Any]:
        """Have a job done that is given by its name, with its payload by the names of the arguments."""
        job = self._app.registry.get(job_type)
        call: Call[Any] = Call(job, job.codec.encode_mapping(payload), Options.of(**choices))
        [handle] = await self._app.enqueue_many([call])
        return handle

    async def list(
        self,
        org_id: UUID | str,
        *,
        status: Status | str | None = None,
        job_type: str | None = None,
        subject_id: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> JobPage:
        """The jobs of an org, the newest first; of an ended status, the last to end first.

        An unknown org raises.
        """
        choice = Choice(
            org(org_id),
            None if status is None else _status(status),
            checked_text("job_type", job_type),
            checked_text("subject_id", subject_id),
        )
        start, size = _start(choice, after), page_size(limit)
        found, end = await self._look(choice, start, size)
        places = [look.place for look in found[:size]]
        async with self._app.tenant_session(choice.org_id) as conn:
            if not found:
                await check_known(conn, choice.org_id)
            read = await listing.read(conn, choice.org_id, [at.job_id for at in places])
        page = [read[at.job_id] for at in places if at.job_id in read]
        # A job may have moved on since it was found.
        shown = tuple(job for job in page if choice.status in (None, job.status))
        return JobPage(shown, _cursor(places[-1] if len(found) > size else end))

    async def show(self, org_id: UUID | str, job_id: UUID | str) -> JobDetail:
        """One job with its story; an unknown id raises."""
        whose, which = org(org_id), _job(job_id)
        async with self._app.tenant_session(whose) as conn:
            job = await jobs.read(conn, whose, which)
            attempts = await listing.last_attempts(conn, whose, which, limit=_STORY)
            events = await listing.last_events(conn, whose, which, limit=_STORY)
        async with (await self._app.ground()).database.engine_session() as conn:
            around = await listing.look_around(conn, whose, which, most=MOST_BEFORE)
            judged = await suspects.look(conn, [(whose, which)])
        if job is None or around is None or not judged:
            raise _unknown(which)
        return JobDetail(job, tuple(attempts), tuple(events), explain(job, around), judged[0].assess())

    async def cancel(self, org_id: UUID | str, job_id: UUID | str, *, actor: Actor, reason: str) -> Status:
        """Ask for the end: `canceled` at once if it waited, else the status it still has. Idempotent."""
        whose, which, who = org(org_id), _job(job_id), asked(actor, reason)
        by: CanceledBy = "user" if actor.type in ("user", "api_key", "operator") else "system"
        here = surroundings()

        async def once() -> str | None:
            async with (await self._app.ground()).database.engine_session() as conn:
                before = await jobs.read(conn, whose, which)
                answer = await jobs.cancel(conn, whose, which, by=by, reason=reason, actor=actor)
                if await _asked_now(conn, whose, which, before):
                    await audit.record(
                        conn,
                        org_id=whose,
                        actor=actor,
                        action="job.cancel_requested",
                        target_type="job",
                        target_id=str(which),
                        reason=who.reason,
                        request_id=here.request_id,
                        correlation_id=here.correlation_id or here.request_id,
                        detail={"answer": answer},
                    )
                return answer

        answer = await retrying(once)
        if answer is None:
            raise _unknown(which)
        if answer == "finished":
            raise AlreadyFinished(f"{which} has ended", field="job_id", fix="an ended job stays as it is")
        return (await Handle[Any](self._app, whose, which).status()).status

    async def _look(
        self, choice: Choice, start: Place, size: int
    ) -> tuple[builtins.list[Look], Place | None]:
        """Those that fit, one more than a page at most; and where the look ended, if not at the end."""
        database, at = (await self._app.ground()).database, start
        found: builtins.list[Look] = []
        most = _AT_ONCE if choice.narrow else size + 1
        session = (
            database.engine_session() if choice.of_the_engine else database.tenant_session(choice.org_id)
        )
        async with session as conn:
            for _ in range(_LOOKS):
                looks = await listing.look(conn, choice, at, most=most)
                found += [look for look in looks if look.fits]
                if len(looks) < most:
                    return found[: size + 1], None
                at = looks[-1].place
                if len(found) > size:
                    break
        return found[: size + 1], at


async def _asked_now(conn: Connection, org_id: UUID, job_id: UUID, before: JobSnapshot | None) -> bool:
    """Whether the request that the job has now is of this transaction."""
    after = await jobs.read(conn, org_id, job_id)
    if before is None or after is None or before.cancel_requested_at == after.cancel_requested_at:
        return False
    # Another request may have come between the two readings.
    around = await listing.look_around(conn, org_id, job_id, most=MOST_BEFORE)
    return around is not None and around.now == after.cancel_requested_at


def _start(choice: Choice, after: str | None) -> Place:
    found = place(after, _read_place)
    if found is None:
        return NEWEST
    if (found.at is None) == (choice.path == "jobs/list_ended"):
        raise ContractError("this page is of another list", field="after", fix="keep the status while paging")
    return found


def _read_place(at: str, job_id: str) -> Place:
    return Place(datetime.fromisoformat(at).astimezone(UTC) if at else None, UUID(job_id))


def _cursor(end: Place | None) -> str | None:
    return None if end is None else cursor("" if end.at is None else end.at.isoformat(), end.job_id)


def _status(status: Status | str) -> Status:
    try:
        return Status(status)
    except ValueError:
        raise ContractError(
            f"{status!r} is no status", field="status", fix=f"one of {', '.join(Status)}"
        ) from None


def _job(job_id: UUID | str) -> UUID:
    found = as_uuid("job_id", job_id)
    if found is None:
        raise MissingField("missing", field="job_id", fix="pass the id of the job")
    return found


def _unknown(job_id: UUID) -> UnknownJob:
    return UnknownJob(f"no job {job_id} in this org", field="job_id", fix="check the id and the org")
