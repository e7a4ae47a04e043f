"""What a handler is given that asks for `ctx: Context`: its job, and what it may do beside working."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta
from typing import Any, TypeVar

from duly.client.handle import Handle
from duly.client.handling import HandlerContext
from duly.client.job import Call
from duly.model.counts import checked_counts
from duly.model.errors import ContractError, LeaseLost
from duly.model.redact import printable
from duly.model.verdict import Cancel
from duly.store import artifacts, work
from duly.store.artifacts import Artifact
from duly.store.claims import ClaimedJob
from duly.store.pool import Connection
from duly.store.work import Step
from duly.worker.chunks import Chunk, chunk_key
from duly.worker.job_log import JobLog
from duly.worker.run import Run
from duly.worker.transaction import Bound, BoundSession
from duly.worker.workshop import Workshop

_LONGEST_NOTE = 500
T = TypeVar("T")
R = TypeVar("R")


class Context(HandlerContext):
    """For async handlers. Everything it writes is fenced: an attempt that lost its lease changes nothing."""

    def __init__(self, run: Run, shop: Workshop) -> None:
        self._run = run
        self.shop = shop

    @property
    def job(self) -> ClaimedJob:
        """The job as it was claimed: ids, actor, trace, attempt."""
        return self._run.job

    @property
    def attempt(self) -> int:
        """Which try this is, from 1; attempts that were given back do not count."""
        return self._run.job.attempt - self._run.job.returned

    @property
    def log(self) -> JobLog:
        """A logger whose lines carry the ids of the job, and are kept with it."""
        run = self._run
        if run.log is None:
            run.log = JobLog(run.job, self.shop.lines)
        return run.log

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for the end."""
        return self._run.cancel is not None

    @property
    def draining(self) -> bool:
        """Whether the worker is about to stop: a good moment for a checkpoint and a `Snooze`."""
        return self._run.draining

    def check_canceled(self) -> None:
        """Stop here if somebody asked for it, or if the job is no longer ours. Call it between steps."""
        self.check_held()
        if self._run.cancel is not None:
            raise Cancel(self._run.cancel.reason)

    def progress(self, percent: float, note: str | None = None) -> None:
        """How far it is. Never falls; cheap: many calls become few writes."""
        percent = checked_percent(percent)
        self.check_held()
        if percent > self._run.percent:
            self._run.percent = percent
            kept = None if note is None else printable(str(note))[:_LONGEST_NOTE]
            self.shop.keeper.note(Step(self._run.job, percent, kept))

    def count(self, **counts: float) -> None:
        """Add to the summary counts of the job, under keys of the catalogue."""
        checked_counts(counts)
        sums = {key: self._run.counts.get(key, 0) + value for key, value in counts.items()}
        self._run.counts |= checked_counts(sums)

    async def partial(self, value: Any, *, key: str | None = None, percent: float | None = None) -> int:
        """Keep a partial result: readable at once, with its event and the progress. Its number."""
        run = self._run
        if percent is not None:
            run.percent = max(run.percent, checked_percent(percent))
        self.check_held()
        with self.shop.span("partial"):
            number = await self._store(value, key)
        if number is None:
            raise self._lose()
        self.shop.keeper.drop(run.job.key)
        run.partials += 1
        return number

    async def _store(self, value: Any, key: str | None) -> int | None:
        run = self._run
        payload, reference = await self.shop.stored(run.job.org_id, value)
        async with self.shop.database.engine_session() as conn:
            return await work.store_chunk(
                conn,
                run.job,
                chunk_key=key,
                payload=payload,
                payload_ref=reference,
                progress_percent=run.percent,
            )

    async def results(self) -> dict[str, Any]:
        """The results of all kept chunks by their key, also of those that earlier attempts finished."""
        job = self._run.job
        async with self.shop.database.engine_session() as conn:
            kept = await work.read_chunks(conn, job)
        return {key: await self.shop.loaded(job.org_id, *value) for key, value in kept.items()}

    async def chunks(
        self, items: Iterable[T], *, key: Callable[[T], object] | None = None
    ) -> AsyncIterator[Chunk[T]]:
        """The items one by one, without those that are done already. Work inside `async with chunk:`."""
        listed = [(chunk_key(item, key), item) for item in items]
        if len({name for name, _ in listed}) < len(listed):
            raise ContractError(
                "two chunks have the same key", field="chunks", fix="pass key=... to tell them apart"
            )
        run = self._run
        kept: set[str] = set()
        if run.job.partial_count or run.partials:
            async with self.shop.database.engine_session() as conn:
                kept = set(await work.read_chunks(conn, run.job))
        done = sum(name in kept for name, _ in listed)
        # A second pass over the same items counts them once.
        fresh = {name for name, _ in listed} - run.chunk_keys
        run.chunk_keys |= fresh
        self.count(total=len(fresh), succeeded=len(fresh & kept))
        for name, item in listed:
            if name not in kept:
                self.check_canceled()
                done += 1
                run.chunks_offered += 1
                yield Chunk(self, name, item, 100 * done / len(listed))

    def chunk_entered(self) -> AbstractContextManager[object]:
        """A chunk is being worked on."""
        self._run.chunks_entered += 1
        return self.shop.span("chunk", self._run.chunks_entered)

    async def chunk_done(self, chunk: Chunk[Any]) -> None:
        """Keep what a chunk made; called when its block is left."""
        await self.partial(chunk.result, key=chunk.key, percent=chunk.percent)
        self.count(succeeded=1)

    def chunk_failed(self, chunk: Chunk[Any], error: Exception) -> bool:
        """Note a chunk's failure; whether the job may go on without it."""
        if not self._run.kind.handling.allows_partial:
            return False
        self._run.note_failure(chunk.key, error)
        self.count(failed=1)
        return True

    @property
    def checkpointed(self) -> Any:
        """What the last checkpoint kept, of this attempt or an earlier one; None if there was none."""
        return self._run.job.checkpoint if self._run.checkpoint is None else self._run.checkpoint

    async def checkpoint(self, value: Any) -> None:
        """Keep where you are: a later attempt finds it in `ctx.checkpointed`."""
        run = self._run
        self.check_held()
        small, reference = await self.shop.stored(run.job.org_id, value)
        if reference is not None or small is None:
            raise ContractError(
                "too large, or nothing", field="checkpoint", fix="keep a position, not the work itself"
            )
        if not await self.shop.keeper.keep(Step(run.job, run.percent, checkpoint=value)):
            raise self._lose()
        run.checkpoint = value

    def session(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction of its own, bound to the job's org by row level security."""
        self.check_held()
        return self.shop.sessions.tenant_session(self._run.job.org_id)

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        """A transaction that commits with the completion of the job, or not at all: the last thing you do."""
        bound = BoundSession()
        self.bind(bound)
        return bound.opened(self.shop.sessions, self._run.job.org_id)

    @property
    def bound(self) -> Bound | None:
        """The transaction that commits with the completion."""
        return self._run.bound

    def bind(self, bound: Bound) -> None:
        """Have this transaction commit with the completion."""
        self.check_held()
        if self._run.bound is not None:
            raise ContractError("one per attempt", field="transaction", fix="write everything in one block")
        self._run.bound = bound

    async def enqueue(self, call: Call[R]) -> Handle[R]:
        """Have a child done: same org, actor and correlation. Inside `ctx.transaction()` it goes with it."""
        [handle] = await self.enqueue_many([call])
        return handle

    async def enqueue_many(self, calls: Sequence[Call[R]]) -> list[Handle[R]]:
        """Have many children done, all or none."""
        self.check_held()
        bound = self.bound
        conn = bound.conn if isinstance(bound, BoundSession) else None
        return await self.shop.app.enqueue_many(calls, conn=conn)

    async def artifact(
        self,
        name: str,
        data: bytes,
        *,
        content_type: str = "application/octet-stream",
        keep: timedelta | None = None,
    ) -> Artifact:
        """Store a file under the job; the same name again replaces it."""
        self.check_held()
        reference = await self.shop.blobs.put(self._run.job.org_id, data)
        file = artifacts.described(name, content_type, str(reference), reference.sha256, reference.size)
        async with self.shop.database.engine_session() as conn:
            made = await artifacts.keep(conn, self._run.job, file, keep_for=keep)
        if made is None:
            raise self._lose()
        return made

    def check_held(self) -> None:
        """Raise if the attempt is no longer ours."""
        if self._run.lost or self._run.closed:
            raise self._lose()

    def _lose(self) -> LeaseLost:
        self._run.lost = True
        return LeaseLost("this attempt is no longer ours", fix="stop: another attempt has taken over")


def checked_percent(percent: float) -> float:
    """A number from 0 to 100."""
    if type(percent) not in (int, float) or not 0 <= percent <= 100:
        raise ContractError(f"{percent!r} is no percentage", field="progress", fix="pass 0 to 100")
    return float(percent)
