"""The job type `duly.bulk`: batch after batch, each in one transaction with its cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any
from uuid import UUID

from pydantic import AliasChoices, BaseModel, Field

from duly.core.errors import LeaseLost
from duly.core.job import SYSTEM_ORG
from duly.core.outcome import Cancel
from duly.core.policy import Category
from duly.db.pool import Connection
from duly.features.audit.entries import audited_transaction
from duly.features.bulk.plan import (
    JOB_TYPE,
    Verb,
    filter_created_before,
    filters_from_json,
    lists_to_change,
)
from duly.features.bulk.steps import BulkOrder, change_jobs
from duly.features.dead_letters.models import ReplayedJob
from duly.features.dead_letters.service import count_enqueued
from duly.features.jobs.filter import JobFilter
from duly.features.jobs.listing import decode_start, encode_end, find_jobs
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.job import Job
from duly.worker import settle_store
from duly.worker.context.context import Context
from duly.worker.settle_store import ProgressUpdate

_TIMEOUT = timedelta(hours=6)
_BATCH_SIZE = 200


def _stored_as(name: str, stored: str) -> Any:
    """Return an argument whose field in stored payloads has another name."""
    return Field(validation_alias=AliasChoices(name, stored), serialization_alias=stored)


class BulkProgress(BaseModel):
    """The progress of a bulk action: its checkpoint."""

    stage: int = 0
    """The index of the current list."""
    after: str | None = None
    """The cursor in it."""
    done: int = 0
    left: dict[str, int] = {}
    """The number of unchanged jobs by reason."""
    over: bool = False

    @property
    def processed(self) -> int:
        """The number of jobs, changed or not."""
        return self.done + sum(self.left.values())


def declare(app: App) -> Job[..., Any]:
    """Return the job type of an application; declare it if needed."""
    if JOB_TYPE in app.registry:
        return app.registry.get(JOB_TYPE)

    @app.job(JOB_TYPE, category=Category.MAINTENANCE, timeout=_TIMEOUT, priority=10)
    async def bulk(
        ctx: Context,
        verb: Verb,
        filters: Annotated[dict[str, Any], _stored_as("filters", "wanted")],
        all_orgs: Annotated[bool, _stored_as("all_orgs", "everywhere")],
        reason: str,
        per_second: float | None,
        expected: int,
    ) -> dict[str, Any]:
        run = _BulkRun(ctx, app, BulkOrder(verb, ctx.job, reason, per_second), filters, expected)
        # Only Duly's own org may change the jobs of other orgs, whatever a payload says.
        every_org = all_orgs and ctx.job.org_id == SYSTEM_ORG
        return await run.run(None if every_org else ctx.job.org_id)

    return bulk


class _BulkRun:
    """One attempt of a bulk action."""

    def __init__(
        self, ctx: Context, app: App, order: BulkOrder, filters: Mapping[str, Any], expected: int
    ) -> None:
        self._ctx = ctx
        self._app = app
        self._order = order
        self._filters = filters
        self._expected = expected

    async def run(self, org_id: UUID | None) -> dict[str, Any]:
        """Change all jobs; return how many were changed, and how many not and why."""
        checkpoint = self._ctx.checkpointed
        progress = BulkProgress() if checkpoint is None else BulkProgress.model_validate(checkpoint)
        lists = await self._lists(org_id)
        try:
            while progress.stage < len(lists):
                self._ctx.check_canceled()
                progress = await self._change_batch(lists[progress.stage], progress)
        except Cancel:
            await self._finish(progress, stopped=True)
            raise
        await self._finish(progress, stopped=False)
        skipped = progress.processed - progress.done
        self._ctx.count(total=progress.processed, succeeded=progress.done, skipped=skipped)
        return {"verb": self._order.verb, "done": progress.done, "left": progress.left}

    async def _lists(self, org_id: UUID | None) -> list[JobFilter]:
        """Return the lists of the jobs that existed when the bulk action was requested."""
        job = self._ctx.job
        async with self._app.tenant_session(job.org_id) as conn:
            own = await job_store.read_job(conn, job.org_id, job.job_id)
        if own is None:
            raise LeaseLost("the job no longer exists", fix="stop")
        job_filter = filter_created_before(org_id, filters_from_json(self._filters), own.created_at)
        return lists_to_change(job_filter, self._order.verb, job.actor)

    async def _change_batch(self, job_filter: JobFilter, progress: BulkProgress) -> BulkProgress:
        # Unchecked: a checkpoint of an earlier release has another digest of the same list.
        start = decode_start(job_filter, progress.after, check_list=False)
        jobs, end = await find_jobs(self._app, job_filter, start, _BATCH_SIZE)

        async def once(conn: Connection) -> tuple[BulkProgress, list[ReplayedJob]]:
            result = await change_jobs(conn, self._order, job_filter, jobs, before=progress.done)
            advanced = BulkProgress(
                stage=progress.stage + (end is None),
                after=encode_end(job_filter, end),
                done=progress.done + result.done,
                left=dict(Counter(progress.left) + Counter(result.left)),
            )
            await self._save(conn, advanced)
            return advanced, result.new_jobs

        advanced, new_jobs = await audited_transaction(self._app, once)
        if new_jobs:
            count_enqueued(new_jobs)
            (await self._app.resources()).waker.wake()
        return advanced

    async def _finish(self, progress: BulkProgress, *, stopped: bool) -> None:
        """Write one audit entry for the whole action."""
        if progress.over:
            return

        async def once(conn: Connection) -> None:
            job = self._ctx.job
            await self._save(conn, progress.model_copy(update={"over": True}))
            await job_store.record_audit_entry(
                conn,
                org_id=job.org_id,
                actor=job.actor,
                action="job.bulk_ended",
                target_type="job",
                target_id=str(job.job_id),
                reason=self._order.reason,
                request_id=job.request_id,
                correlation_id=job.correlation_id,
                detail={
                    "verb": self._order.verb,
                    "wanted": dict(self._filters),
                    "done": progress.done,
                    "left": progress.left,
                    "stopped": stopped,
                },
            )

        await audited_transaction(self._app, once)

    async def _save(self, conn: Connection, progress: BulkProgress) -> None:
        """Write the checkpoint. Fenced: an attempt that lost its lease rolls back its changes."""
        processed = progress.processed
        percent = 100 * processed / max(self._expected, processed + (not progress.over), 1)
        note = f"{progress.done} done, {processed - progress.done} left"
        update = ProgressUpdate(self._ctx.job, percent, note, progress.model_dump(mode="json"))
        if not await settle_store.write_progress(conn, [update]):
            raise LeaseLost("this attempt lost its lease", fix="stop: another attempt has taken over")
