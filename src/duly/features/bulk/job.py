"""The job type `duly.bulk`: batch after batch, each one transaction with the place that it came to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from pydantic import BaseModel

from duly.core.errors import LeaseLost
from duly.core.job import SYSTEM_ORG
from duly.core.outcome import Cancel
from duly.core.policy import Category
from duly.db.pool import Connection
from duly.features.audit.entries import audited_transaction
from duly.features.bulk.plan import JOB_TYPE, Verb, fenced, restored, touched
from duly.features.bulk.steps import Orders, act
from duly.features.dead_letters.service import count_enqueued
from duly.features.dead_letters.store import ReplayedJob
from duly.features.jobs.filter import cursor_of, start_of
from duly.features.jobs.filter_store import Choice, Place
from duly.features.jobs.walk import look
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.job import Job
from duly.worker import settle_store as work
from duly.worker.context.context import Context
from duly.worker.settle_store import ProgressUpdate

_TIMEOUT = timedelta(hours=6)
_BATCH = 200


class Progress(BaseModel):
    """How far it came: kept with every batch."""

    stage: int = 0
    """Which of the lists."""
    after: str | None = None
    """Where in it."""
    done: int = 0
    left: dict[str, int] = {}
    """How many were left alone, by the reason."""
    over: bool = False

    @property
    def seen(self) -> int:
        """How many were looked at."""
        return self.done + sum(self.left.values())

    def further(self, done: int, left: Counter[str], choice: Choice, end: Place | None) -> Progress:
        """After one more batch, which ended there, or at the end of the list."""
        return Progress(
            stage=self.stage + (end is None),
            after=cursor_of(choice, end),
            done=self.done + done,
            left=dict(Counter(self.left) + left),
        )


def declare(app: App) -> Job[..., Any]:
    """Add the job type to an application, or find it there."""
    if JOB_TYPE in app.registry:
        return app.registry.get(JOB_TYPE)

    @app.job(JOB_TYPE, category=Category.MAINTENANCE, timeout=_TIMEOUT, priority=10)
    async def bulk(
        ctx: Context,
        verb: Verb,
        wanted: dict[str, Any],
        everywhere: bool,
        reason: str,
        per_second: float | None,
        expected: int,
    ) -> dict[str, Any]:
        run = _Run(ctx, app, Orders(verb, ctx.job, reason, per_second), wanted, expected)
        # Only Duly's own org may look into those of others, whatever a payload says.
        alone = not everywhere or ctx.job.org_id != SYSTEM_ORG
        return await run.to_the_end(ctx.job.org_id if alone else None)

    return bulk


class _Run:
    """One attempt to go through all of them."""

    def __init__(
        self, ctx: Context, app: App, orders: Orders, wanted: Mapping[str, Any], expected: int
    ) -> None:
        self._ctx = ctx
        self._app = app
        self._orders = orders
        self._wanted = wanted
        self._expected = expected

    async def to_the_end(self, org_id: UUID | None) -> dict[str, Any]:
        """What was done, and what was left alone and why."""
        kept = self._ctx.checkpointed
        now = Progress() if kept is None else Progress.model_validate(kept)
        lists = await self._lists(org_id)
        try:
            while now.stage < len(lists):
                self._ctx.check_canceled()
                now = await self._batch(lists, now)
        except Cancel:
            await self._end(now, stopped=True)
            raise
        await self._end(now, stopped=False)
        self._ctx.count(total=now.seen, succeeded=now.done, skipped=now.seen - now.done)
        return {"verb": self._orders.verb, "done": now.done, "left": now.left}

    async def _lists(self, org_id: UUID | None) -> list[Choice]:
        """Only jobs that were there when it was asked for."""
        job = self._ctx.job
        async with self._app.tenant_session(job.org_id) as conn:
            own = await job_store.read_job(conn, job.org_id, job.job_id)
        if own is None:
            raise LeaseLost("the job is gone", fix="stop")
        choice = fenced(org_id, restored(self._wanted), own.created_at)
        return touched(choice, self._orders.verb, job.actor)

    async def _batch(self, lists: list[Choice], now: Progress) -> Progress:
        choice = lists[now.stage]
        found, end = await look(self._app, choice, start_of(choice, now.after), _BATCH)
        places = found[:_BATCH]
        if len(found) > _BATCH:
            end = places[-1]
        further, made = await audited_transaction(self._app, partial(self._done, choice, now, places, end))
        if made:
            count_enqueued(made)
            (await self._app.resources()).waker.wake()
        return further

    async def _done(
        self, choice: Choice, now: Progress, places: list[Place], end: Place | None, conn: Connection
    ) -> tuple[Progress, list[ReplayedJob]]:
        """What is done to them, and how far that is, together or not at all."""
        done = await act(conn, self._orders, choice, places, before=now.done)
        further = now.further(done.done, Counter(done.left), choice, end)
        await self._keep(conn, further)
        return further, done.made

    async def _end(self, now: Progress, *, stopped: bool) -> None:
        """One line of the audit trail for the whole."""
        if now.over:
            return

        async def once(conn: Connection) -> None:
            job, orders = self._ctx.job, self._orders
            await self._keep(conn, now.model_copy(update={"over": True}))
            await job_store.record_audit_entry(
                conn,
                org_id=job.org_id,
                actor=job.actor,
                action="job.bulk_ended",
                target_type="job",
                target_id=str(job.job_id),
                reason=orders.reason,
                request_id=job.request_id,
                correlation_id=job.correlation_id,
                detail={
                    "verb": orders.verb, "wanted": dict(self._wanted), "done": now.done, "left": now.left,
                    "stopped": stopped,
                },
            )  # fmt: skip

        await audited_transaction(self._app, once)

    async def _keep(self, conn: Connection, now: Progress) -> None:
        """Fenced: an attempt that lost its lease rolls back what it did."""
        percent = 100 * now.seen / max(self._expected, now.seen + (not now.over), 1)
        note = f"{now.done} done, {now.seen - now.done} left"
        step = ProgressUpdate(self._ctx.job, percent, note, now.model_dump(mode="json"))
        if not await work.write_progress(conn, [step]):
            raise LeaseLost("this attempt is no longer ours", fix="stop: another attempt has taken over")
