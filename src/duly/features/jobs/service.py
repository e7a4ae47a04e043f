"""Jobs as operators use them: list, inspect, submit by name and cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Unpack
from uuid import UUID

from duly.blobs import BlobNotFound
from duly.core.errors import AlreadyFinished, NotFound
from duly.core.freshness import Assessment
from duly.core.job import Actor, JobSnapshot
from duly.core.outcome import CanceledBy
from duly.core.states import Status
from duly.db.pool import Connection
from duly.deprecated_names import DeprecatedName
from duly.features.arguments import check_org_exists, org_uuid, required_uuid, unknown_job
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.job_detail.service import (
    ChangeMarker,
    FullJobDetail,
    JobDetail,
    read_change_marker,
    read_detail,
    read_full_detail,
)
from duly.features.job_logs.service import LogPage, read_log_page
from duly.features.jobs import all_orgs_store
from duly.features.jobs import store as job_lists
from duly.features.jobs.filter import JobCursor, JobFilter, JobFilterKeywords, parse_filter
from duly.features.jobs.listing import decode_start, encode_end, find_jobs
from duly.features.pagination import Count, page_size
from duly.features.system_jobs import check_may_cancel
from duly.jobs import stale_jobs
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import EnqueueKeywords, EnqueueOptions
from duly.jobs.handle import Handle
from duly.jobs.job import Call
from duly.jobs.status_batcher import JobStatusReading, read_status

__all__ = ["ChangeMarker", "FullJobDetail", "JobDetail", "JobPage", "JobStatusReading", "Jobs"]

T = TypeVar("T")
_MAX_COUNT = 1_000


@dataclass(frozen=True, slots=True)
class JobPage:
    """A page of jobs; `after` is the cursor of the next page, None on the last one.

    A filter without an index scans a bounded number of jobs: a page may be short or empty although more pages
    follow.
    """

    jobs: tuple[JobSnapshot, ...]
    after: str | None


class Jobs:
    """The jobs of the orgs of an application."""

    beat = DeprecatedName("change_marker")
    glance = DeprecatedName("status")
    list_everywhere = DeprecatedName("list_all_orgs")
    story = DeprecatedName("full_detail")

    def __init__(self, app: App) -> None:
        self._app = app

    async def submit(
        self, job_type: str, payload: Mapping[str, Any], **options: Unpack[EnqueueKeywords]
    ) -> Handle[Any]:
        """Enqueue a job by the name of its type, with a payload by the names of its arguments."""
        job = self._app.registry.get(job_type)
        call: Call[Any] = Call(job, job.codec.encode_mapping(payload), EnqueueOptions.of(**options))
        [handle] = await self._app.enqueue_many([call])
        return handle

    async def list(
        self,
        org_id: UUID | str,
        *,
        limit: int = 50,
        after: str | None = None,
        **filters: Unpack[JobFilterKeywords],
    ) -> JobPage:
        """Return the jobs of an org that match all filters, newest first; ended ones by their end.

        Raise for an unknown org.
        """
        job_filter = parse_filter(org_uuid(org_id), filters)
        page = await self._page(job_filter, limit, after)
        if not page.jobs and page.after is None:
            async with self._app.tenant_session(job_filter.single_org) as conn:
                await check_org_exists(conn, job_filter.single_org)
        return page

    async def list_all_orgs(
        self, *, limit: int = 50, after: str | None = None, **filters: Unpack[JobFilterKeywords]
    ) -> JobPage:
        """Return the jobs of all orgs that match, for operators; last changed first.

        Active jobs come in the order of workers and queues. Other jobs are found as long as their events are
        retained. No index serves a subject here.
        """
        return await self._page(parse_filter(None, filters), limit, after)

    async def count_by_status(self, org_id: UUID | str | None) -> dict[Status, Count]:
        """Count the jobs of an org in each status, up to 1,000 each; without an org, those of all orgs.

        Completed jobs of all orgs are not counted: no index finds them.
        """
        org = None if org_id is None else org_uuid(org_id)
        async with (await self._app.resources()).database.engine() as conn:
            return await job_lists.count_by_status(conn, org, limit=_MAX_COUNT)

    async def find(self, job_id: UUID | str) -> UUID | None:
        """Return the org of a job, for operators; None if there is no such job."""
        async with (await self._app.resources()).database.engine() as conn:
            return await all_orgs_store.find_org(conn, required_uuid("job_id", job_id))

    async def _page(self, job_filter: JobFilter, limit: int, after: str | None) -> JobPage:
        start = decode_start(job_filter, after)
        found, end = await find_jobs(self._app, job_filter, start, page_size(limit))
        jobs = await self._read(job_filter, found) if found else {}
        # The status of a job may have changed since it was found.
        page = [job for one in found if (job := jobs.get(one.job_id)) and job_filter.matches_state(job)]
        return JobPage(tuple(page), encode_end(job_filter, end))

    async def _read(self, job_filter: JobFilter, found: Sequence[JobCursor]) -> dict[UUID, JobSnapshot]:
        if job_filter.org_id is None:
            async with (await self._app.resources()).database.engine() as conn:
                return await all_orgs_store.read_jobs(conn, found)
        async with self._app.tenant_session(job_filter.org_id) as conn:
            return await job_store.read_jobs(conn, job_filter.org_id, [job.job_id for job in found])

    async def freshness(
        self, org_id: UUID | str | None, jobs: Sequence[JobSnapshot]
    ) -> dict[UUID, Assessment]:
        """Assess the freshness of jobs of an org, or of each job's own org."""
        org = None if org_id is None else org_uuid(org_id)
        if not jobs:
            return {}
        async with (await self._app.resources()).database.engine() as conn:
            evidence = await stale_jobs.read_evidence(conn, [(org or job.org_id, job.job_id) for job in jobs])
        return {one.job_id: one.assess() for one in evidence}

    async def status(self, org_id: UUID | str, job_id: UUID | str) -> JobStatusReading:
        """Return a job with the number of its last event and its freshness, in one round trip."""
        org, job = org_uuid(org_id), required_uuid("job_id", job_id)
        return _existing(job, await read_status((await self._app.resources()).database, org, job))

    async def show(self, org_id: UUID | str, job_id: UUID | str, *, for_tenant: bool = False) -> JobDetail:
        """Return a job with its last attempts and events, and the explanation of its status.

        With `for_tenant`, workers and operators of the installation are not named.
        """
        org, job = org_uuid(org_id), required_uuid("job_id", job_id)
        return _existing(job, await read_detail(self._app, org, job, for_tenant=for_tenant))

    async def full_detail(
        self,
        org_id: UUID | str,
        job_id: UUID | str,
        *,
        compared: Sequence[int] = (),
        for_tenant: bool = False,
        language: str = "en",
    ) -> FullJobDetail:
        """Return a job with everything that the console shows.

        The explanation is in English, or in German for `de`. `compared` selects the partial results whose
        values are returned, by default the last two. Values in blobs are not loaded.
        """
        org, job = org_uuid(org_id), required_uuid("job_id", job_id)
        detail = await read_full_detail(
            self._app, org, job, compared=compared, for_tenant=for_tenant, language=language
        )
        return _existing(job, detail)

    async def change_marker(self, org_id: UUID | str, job_id: UUID | str) -> ChangeMarker:
        """Return the values that change whenever the full detail of a job does, in one round trip."""
        org, job = org_uuid(org_id), required_uuid("job_id", job_id)
        return _existing(job, await read_change_marker((await self._app.resources()).database, org, job))

    async def payload(self, org_id: UUID | str, job_id: UUID | str) -> dict[str, Any]:
        """Return the payload of a job from its row or its blob; raise if it is no longer retained."""
        org, job_key = org_uuid(org_id), required_uuid("job_id", job_id)
        async with self._app.tenant_session(org) as conn:
            job = _existing(job_key, await job_store.read_job(conn, org, job_key))
            try:
                return await job_store.read_payload(self._app, conn, job)
            except BlobNotFound:
                raise NotFound(
                    f"the payload of {job_key} is no longer retained",
                    field="job_id",
                    fix="submit a new job with the payload",
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
        """Return the lines that the handler logged with `ctx.log`, attempt by attempt.

        The first 200 and the last 50 lines of an attempt are stored. An empty page is the last one for now.
        """
        org, job = org_uuid(org_id), required_uuid("job_id", job_id)
        async with self._app.tenant_session(org) as conn:
            page = await read_log_page(conn, org, job, attempt=attempt, after=after, limit=limit)
            if not page.lines:
                _existing(job, await job_store.read_job(conn, org, job))
        return page

    async def cancel(self, org_id: UUID | str, job_id: UUID | str, *, actor: Actor, reason: str) -> Status:
        """Cancel a queued job, or ask the worker of a running one to stop; return the status. Idempotent."""
        org, job, request = org_uuid(org_id), required_uuid("job_id", job_id), change_request(actor, reason)

        async def once(conn: Connection) -> str | None:
            before = await job_store.read_job(conn, org, job)
            if before is not None:
                check_may_cancel(actor, before.job_type)
            answer = await job_store.cancel_job(
                conn, org, job, by=canceled_by(actor), reason=reason, actor=actor
            )
            if before is not None and await _was_requested_now(conn, before):
                await record_entry(conn, request, org, "job.cancel_requested", str(job), answer=answer)
            return answer

        if _existing(job, await audited_transaction(self._app, once)) == "finished":
            raise AlreadyFinished(f"{job} has ended", field="job_id", fix="replay it as a new job if needed")
        return (await Handle[Any](self._app, org, job).status()).status


def canceled_by(actor: Actor) -> CanceledBy:
    """Return whether a cancellation counts as one of a user or of the system."""
    return "user" if actor.type in ("user", "api_key", "operator") else "system"


async def _was_requested_now(conn: Connection, before: JobSnapshot) -> bool:
    """Return whether this transaction wrote the cancellation request of the job."""
    after = await job_store.read_job(conn, before.org_id, before.job_id)
    if after is None or before.cancel_requested_at == after.cancel_requested_at:
        return False
    # Another transaction may have written it between the two reads.
    return after.cancel_requested_at == await job_lists.read_transaction_time(conn)


def _existing(job_id: UUID, found: T | None) -> T:
    if found is None:
        raise unknown_job(job_id)
    return found
