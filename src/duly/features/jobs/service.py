"""Jobs as operators see them: lists, one with its whole story, a new one by name, and the end of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack
from uuid import UUID

from duly.blobs import BlobNotFound
from duly.core.errors import AlreadyFinished, MissingField, NotFound, UnknownJob
from duly.core.freshness import Assessment
from duly.core.job import Actor, JobEvent, JobSnapshot
from duly.core.outcome import CanceledBy
from duly.core.states import Status
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.job_detail import store as stories
from duly.features.job_detail.explain import MOST_BEFORE, explain
from duly.features.job_detail.service import JobStory, read_story
from duly.features.job_detail.store import Beat
from duly.features.job_logs.service import LogPage, read_lines
from duly.features.jobs import all_orgs_store as everywhere
from duly.features.jobs import store as listing
from duly.features.jobs.filter import Filters, choose, cursor_of, start_of
from duly.features.jobs.filter_store import Choice, Place
from duly.features.jobs.store import Attempt
from duly.features.jobs.walk import look
from duly.features.pagination import Count, page_size
from duly.features.system_jobs import check_may_cancel
from duly.jobs import stale_jobs
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import EnqueueKeywords, EnqueueOptions
from duly.jobs.handle import Handle
from duly.jobs.job import Call
from duly.jobs.request_context import as_uuid
from duly.jobs.status_batcher import read_status
from duly.jobs.store import read_payload

__all__ = ["Attempt", "Glance", "JobDetail", "JobPage", "Jobs"]

_STORY = 100
_COUNTED = 1_000


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


@dataclass(frozen=True, slots=True)
class Glance:
    """One job at one moment, for whoever polls it."""

    job: JobSnapshot
    event_seq: int
    """The number of its last event."""
    freshness: Assessment

    @property
    def latest_result_seq(self) -> int | None:
        """The number of its last snapshot, if there ever was one."""
        return self.job.partial_count + (self.job.status is Status.COMPLETED) or None


class Jobs:
    """The jobs of the orgs of an application."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def submit(
        self, job_type: str, payload: Mapping[str, Any], **choices: Unpack[EnqueueKeywords]
    ) -> Handle[Any]:
        """Have a job done that is given by its name, with its payload by the names of the arguments."""
        job = self._app.registry.get(job_type)
        call: Call[Any] = Call(job, job.codec.encode_mapping(payload), EnqueueOptions.of(**choices))
        [handle] = await self._app.enqueue_many([call])
        return handle

    async def list(
        self, org_id: UUID | str, *, limit: int = 50, after: str | None = None, **wanted: Unpack[Filters]
    ) -> JobPage:
        """The jobs of an org for which all of this is so, the newest first; ended ones by their end.

        An unknown org raises.
        """
        choice = choose(org_uuid(org_id), wanted)
        page = await self._page(choice, limit, after)
        if not page.jobs and page.after is None:
            async with self._app.tenant_session(choice.whose) as conn:
                await check_org_exists(conn, choice.whose)
        return page

    async def list_everywhere(
        self, *, limit: int = 50, after: str | None = None, **wanted: Unpack[Filters]
    ) -> JobPage:
        """The jobs of all orgs, for who runs the installation; the last to change first.

        Active ones are in the order of workers and queues. Of the others, those whose events are still kept.
        A subject is no help here: what no index serves looks at so many jobs and no more.
        """
        return await self._page(choose(None, wanted), limit, after)

    async def count_by_status(self, org_id: UUID | str | None) -> dict[Status, Count]:
        """How many jobs an org has in each status, counted no further than 1,000; without one, all of them.

        What completed in all orgs together is not counted: no index finds that.
        """
        whose = None if org_id is None else org_uuid(org_id)
        async with (await self._app.resources()).database.engine() as conn:
            return await listing.count_by_status(conn, whose, most=_COUNTED)

    async def find(self, job_id: UUID | str) -> UUID | None:
        """Whose job it is, for who runs the installation; None if there is no such job."""
        async with (await self._app.resources()).database.engine() as conn:
            return await everywhere.find(conn, _job(job_id))

    async def _page(self, choice: Choice, limit: int, after: str | None) -> JobPage:
        start, size = start_of(choice, after), page_size(limit)
        found, end = await look(self._app, choice, start, size) if choice.statuses else ([], None)
        places = found[:size]
        read = await self._read(choice, places) if places else {}
        page = [read[at.job_id] for at in places if at.job_id in read]
        # A job may have moved on since it was found.
        shown = tuple(job for job in page if choice.shows(job.status, job.outcome))
        return JobPage(shown, cursor_of(choice, places[-1] if len(found) > size else end))

    async def _read(self, choice: Choice, places: Sequence[Place]) -> dict[UUID, JobSnapshot]:
        if choice.org_id is None:
            async with (await self._app.resources()).database.engine() as conn:
                return await listing.read_everywhere(conn, places)
        async with self._app.tenant_session(choice.org_id) as conn:
            return await job_store.read_jobs(conn, choice.org_id, [at.job_id for at in places])

    async def freshness(
        self, org_id: UUID | str | None, found: Sequence[JobSnapshot]
    ) -> dict[UUID, Assessment]:
        """Whether these jobs of an org, or each of its own, can still be believed, by what is known now."""
        whose = None if org_id is None else org_uuid(org_id)
        if not found:
            return {}
        async with (await self._app.resources()).database.engine() as conn:
            judged = await stale_jobs.read_evidence(
                conn, [(whose or job.org_id, job.job_id) for job in found]
            )
        return {suspect.job_id: suspect.assess() for suspect in judged}

    async def glance(self, org_id: UUID | str, job_id: UUID | str) -> Glance:
        """One job as it is now, with all that whoever polls it wants to know, in one round trip.

        An unknown id raises.
        """
        whose, which = org_uuid(org_id), _job(job_id)
        found = await read_status((await self._app.resources()).database, whose, which)
        if found is None:
            raise _unknown(which)
        return Glance(*found)

    async def show(self, org_id: UUID | str, job_id: UUID | str, *, outside: bool = False) -> JobDetail:
        """One job with its story; an unknown id raises. `outside`, nobody of the installation is named."""
        whose, which = org_uuid(org_id), _job(job_id)
        async with self._app.tenant_session(whose) as conn:
            job = await job_store.read_job(conn, whose, which)
            attempts = await listing.last_attempts(conn, whose, which, limit=_STORY)
            events = await listing.last_events(conn, whose, which, limit=_STORY)
        async with (await self._app.resources()).database.engine() as conn:
            around = await listing.look_around(conn, whose, which, most=MOST_BEFORE)
            judged = await stale_jobs.read_evidence(conn, [(whose, which)])
        if job is None or around is None or not judged:
            raise _unknown(which)
        story = explain(job, around, outside=outside)
        return JobDetail(job, tuple(attempts), tuple(events), story, judged[0].assess())

    async def story(
        self,
        org_id: UUID | str,
        job_id: UUID | str,
        *,
        compared: Sequence[int] = (),
        outside: bool = False,
        language: str = "en",
    ) -> JobStory:
        """One job as a page tells of it; an unknown id raises. `outside`, as for `show`.

        It is explained in English, or in German for `de`. `compared` are the numbers of the partial results
        whose values are wanted: by default, of the last two. What lies in the blobs is not loaded.
        """
        whose, which = org_uuid(org_id), _job(job_id)
        found = await read_story(
            self._app, whose, which, compared=compared, outside=outside, language=language
        )
        if found is None:
            raise _unknown(which)
        return found

    async def beat(self, org_id: UUID | str, job_id: UUID | str) -> Beat:
        """What changes when the story of a job does, in one round trip; an unknown id raises."""
        whose, which = org_uuid(org_id), _job(job_id)
        found = await stories.beat((await self._app.resources()).database, whose, which)
        if found is None:
            raise _unknown(which)
        return found

    async def payload(self, org_id: UUID | str, job_id: UUID | str) -> dict[str, Any]:
        """What a job was given, wherever it lies; an unknown id raises, and so does what is not kept."""
        whose, which = org_uuid(org_id), _job(job_id)
        async with self._app.tenant_session(whose) as conn:
            job = await job_store.read_job(conn, whose, which)
            if job is None:
                raise _unknown(which)
            try:
                return await read_payload(self._app, conn, job)
            except BlobNotFound:
                raise NotFound(
                    f"the payload of {which} is no longer kept", field="job_id", fix="submit it anew"
                ) from None

    async def logs(
        self,
        org_id: UUID | str,
        job_id: UUID | str,
        *,
        attempt: int | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> LogPage:
        """What the handler of a job logged with `ctx.log`, attempt by attempt; an unknown id raises.

        Of an attempt the first 200 lines are kept and the last 50. An empty page is the last for now.
        """
        whose, which = org_uuid(org_id), _job(job_id)
        async with self._app.tenant_session(whose) as conn:
            page = await read_lines(conn, whose, which, attempt=attempt, after=after, limit=limit)
            if not page.lines and await job_store.read_job(conn, whose, which) is None:
                raise _unknown(which)
        return page

    async def cancel(self, org_id: UUID | str, job_id: UUID | str, *, actor: Actor, reason: str) -> Status:
        """Ask for the end: `canceled` at once if it waited, else the status it still has. Idempotent."""
        whose, which, who = org_uuid(org_id), _job(job_id), change_request(actor, reason)
        by: CanceledBy = "user" if actor.type in ("user", "api_key", "operator") else "system"

        async def once(conn: Connection) -> str | None:
            before = await job_store.read_job(conn, whose, which)
            if before is not None:
                check_may_cancel(actor, before.job_type)
            answer = await job_store.cancel_job(conn, whose, which, by=by, reason=reason, actor=actor)
            if await _asked_now(conn, whose, which, before):
                await record_entry(conn, who, whose, "job.cancel_requested", str(which), answer=answer)
            return answer

        answer = await audited_transaction(self._app, once)
        if answer is None:
            raise _unknown(which)
        if answer == "finished":
            raise AlreadyFinished(f"{which} has ended", field="job_id", fix="an ended job stays as it is")
        return (await Handle[Any](self._app, whose, which).status()).status


async def _asked_now(conn: Connection, org_id: UUID, job_id: UUID, before: JobSnapshot | None) -> bool:
    """Whether the request that the job has now is of this transaction."""
    after = await job_store.read_job(conn, org_id, job_id)
    if before is None or after is None or before.cancel_requested_at == after.cancel_requested_at:
        return False
    # Another request may have come between the two readings.
    around = await listing.look_around(conn, org_id, job_id, most=MOST_BEFORE)
    return around is not None and around.now == after.cancel_requested_at


def _job(job_id: UUID | str) -> UUID:
    found = as_uuid("job_id", job_id)
    if found is None:
        raise MissingField("missing", field="job_id", fix="pass the id of the job")
    return found


def _unknown(job_id: UUID) -> UnknownJob:
    return UnknownJob(f"no job {job_id} in this org", field="job_id", fix="check the id and the org")
