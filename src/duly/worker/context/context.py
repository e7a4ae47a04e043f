"""The context of async handlers (`ctx: Context`): its job, chunks, progress, results, transaction, log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta
from typing import Any, TypeVar

from duly.core.errors import ContractError, LeaseLost
from duly.core.job import check_summary_counts
from duly.core.outcome import Cancel
from duly.core.redaction import printable
from duly.db.pool import Connection
from duly.jobs import store as job_store
from duly.jobs.codec import HandlerContext
from duly.jobs.handle import Handle
from duly.jobs.job import Call
from duly.jobs.store import Artifact
from duly.worker import settle_store
from duly.worker.claim import ClaimedJob
from duly.worker.context.chunks import Chunk, chunk_key
from duly.worker.context.run import JobRun
from duly.worker.context.services import HandlerServices
from duly.worker.context.transaction import BoundSession, BoundTransaction
from duly.worker.job_log import JobLog
from duly.worker.settle_store import ProgressUpdate

_MAX_NOTE_LENGTH = 500
T = TypeVar("T")
R = TypeVar("R")


class Context(HandlerContext):
    """For async handlers. The attempt fences every write: after a lost lease nothing is changed."""

    def __init__(self, run: JobRun, services: HandlerServices) -> None:
        self._run = run
        self.services = services

    @property
    def job(self) -> ClaimedJob:
        """The job as it was claimed: ids, actor, trace, attempt."""
        return self._run.job

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; attempts that were given back do not count."""
        return self._run.job.attempt - self._run.job.returned

    @property
    def log(self) -> JobLog:
        """A logger whose lines carry the ids of the job and are stored with it."""
        run = self._run
        if run.log is None:
            run.log = JobLog(run.job, self.services.job_log)
        return run.log

    @property
    def cancel_requested(self) -> bool:
        """Whether a cancel was requested."""
        return self._run.cancel is not None

    @property
    def draining(self) -> bool:
        """Whether the worker is about to stop: a good moment for a checkpoint and a `Snooze`."""
        return self._run.draining

    def check_canceled(self) -> None:
        """Raise if a cancel was requested or the lease was lost. Call it between steps."""
        self.check_held()
        if self._run.cancel is not None:
            raise Cancel(self._run.cancel.reason)

    def progress(self, percent: float, note: str | None = None) -> None:
        """Report progress. It never falls; cheap, because many calls become few writes."""
        percent = checked_percent(percent)
        self.check_held()
        if percent > self._run.percent:
            self._run.percent = percent
            note = None if note is None else printable(str(note))[:_MAX_NOTE_LENGTH]
            self.services.progress.put(ProgressUpdate(self._run.job, percent, note))

    def count(self, **counts: float) -> None:
        """Add to the summary counts of the job, under keys of the catalogue."""
        check_summary_counts(counts)
        sums = {key: self._run.counts.get(key, 0) + value for key, value in counts.items()}
        self._run.counts = {**self._run.counts, **check_summary_counts(sums)}

    async def partial(self, value: Any, *, key: str | None = None, percent: float | None = None) -> int:
        """Store a partial result, readable at once; return its number."""
        run = self._run
        if percent is not None:
            run.percent = max(run.percent, checked_percent(percent))
        self.check_held()
        with self.services.span("partial"):
            number = await self._store(value, key)
        if number is None:
            raise self._lose()
        self.services.progress.drop(run.job)
        run.partials += 1
        return number

    async def _store(self, value: Any, key: str | None) -> int | None:
        run = self._run
        payload, reference = await self.services.store_value(run.job.org_id, value)
        await settle_store.leave_plain_path(self.services.database, [run.job])
        async with self.services.database.engine() as conn:
            return await settle_store.store_chunk(
                conn,
                run.job,
                chunk_key=key,
                payload=payload,
                payload_ref=reference,
                progress_percent=run.percent,
            )

    async def results(self) -> dict[str, Any]:
        """Return the results of all stored chunks by key, including those of earlier attempts."""
        job = self._run.job
        async with self.services.database.engine() as conn:
            stored = await settle_store.read_chunks(conn, job)
        return {key: await self.services.load_value(job.org_id, *value) for key, value in stored.items()}

    async def chunks(
        self, items: Iterable[T], *, key: Callable[[T], object] | None = None
    ) -> AsyncIterator[Chunk[T]]:
        """Yield the items whose chunk is not done yet. Work inside `async with chunk:`."""
        listed = [(chunk_key(item, key), item) for item in items]
        if len({name for name, _ in listed}) < len(listed):
            raise ContractError(
                "two chunks have the same key", field="chunks", fix="pass key=... to tell them apart"
            )
        run = self._run
        stored: set[str] = set()
        if run.job.partial_count or run.partials:
            async with self.services.database.engine() as conn:
                stored = set(await settle_store.read_chunks(conn, run.job))
        done = sum(name in stored for name, _ in listed)
        # A second pass over the same items counts them once.
        fresh = {name for name, _ in listed} - run.chunk_keys
        run.chunk_keys |= fresh
        self.count(total=len(fresh), succeeded=len(fresh & stored))
        for name, item in listed:
            if name not in stored:
                self.check_canceled()
                done += 1
                run.chunks_offered += 1
                yield Chunk(self, name, item, 100 * done / len(listed))

    def chunk_entered(self) -> AbstractContextManager[object]:
        """Enter a chunk; return its trace span."""
        self._run.chunks_entered += 1
        return self.services.span("chunk", self._run.chunks_entered)

    async def chunk_done(self, chunk: Chunk[Any]) -> None:
        """Store the result of a chunk whose block was left without an error."""
        await self.partial(chunk.result, key=chunk.key, percent=chunk.percent)
        self.count(succeeded=1)

    def chunk_failed(self, chunk: Chunk[Any], error: Exception) -> bool:
        """Record a chunk's failure; return whether the job may go on without it."""
        if not self._run.kind.handler_options.allows_partial:
            return False
        self._run.add_failure(chunk.key, error)
        self.count(failed=1)
        return True

    @property
    def checkpointed(self) -> Any:
        """The value of the last checkpoint, of this attempt or an earlier one; None if there was none."""
        return self._run.job.checkpoint if self._run.checkpoint is None else self._run.checkpoint

    async def checkpoint(self, value: Any) -> None:
        """Store a position: a later attempt finds it in `ctx.checkpointed`."""
        run = self._run
        self.check_held()
        small, reference = await self.services.store_value(run.job.org_id, value)
        if reference is not None or small is None:
            raise ContractError(
                "the checkpoint is None or too large",
                field="checkpoint",
                fix="store a position, not the work itself",
            )
        if not await self.services.progress.write_now(ProgressUpdate(run.job, run.percent, checkpoint=value)):
            raise self._lose()
        run.checkpoint = value

    def session(self) -> AbstractAsyncContextManager[Connection]:
        """Return a separate transaction, bound to the job's org by row level security."""
        self.check_held()
        return self.services.sessions.tenant(self._run.job.org_id)

    def transaction(self) -> AbstractAsyncContextManager[Connection]:
        """Return a transaction that commits with the completion of the job or not at all: use it last."""
        bound = BoundSession()
        self.bind(bound)
        return bound.open(self.services.sessions, self._run.job.org_id)

    @property
    def bound(self) -> BoundTransaction | None:
        """The transaction that commits with the completion."""
        return self._run.bound

    def bind(self, bound: BoundTransaction) -> None:
        """Commit this transaction with the completion of the job."""
        self.check_held()
        if self._run.bound is not None:
            raise ContractError(
                "only one transaction per attempt", field="transaction", fix="write everything in one block"
            )
        self._run.bound = bound

    async def enqueue(self, call: Call[R]) -> Handle[R]:
        """Enqueue a child with the same org, actor and correlation, in `ctx.transaction()` if it is open."""
        [handle] = await self.enqueue_many([call])
        return handle

    async def enqueue_many(self, calls: Sequence[Call[R]]) -> list[Handle[R]]:
        """Enqueue many children, all or none."""
        self.check_held()
        bound = self.bound
        conn = bound.conn if isinstance(bound, BoundSession) else None
        return await self.services.app.enqueue_many(calls, conn=conn)

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
        reference = await self.services.blobs.put(self._run.job.org_id, data)
        file = job_store.new_artifact(name, content_type, str(reference), reference.sha256, reference.size)
        await settle_store.leave_plain_path(self.services.database, [self._run.job])
        async with self.services.database.engine() as conn:
            artifact = await job_store.write_artifact(conn, self._run.job.fence, file, keep_for=keep)
        if artifact is None:
            raise self._lose()
        return artifact

    def check_held(self) -> None:
        """Raise LeaseLost if the attempt has lost its lease or has ended."""
        if self._run.lost or self._run.closed:
            raise self._lose()

    def _lose(self) -> LeaseLost:
        self._run.lost = True
        return LeaseLost("this attempt has lost its lease", fix="stop: another attempt has taken over")


def checked_percent(percent: float) -> float:
    """Return the percentage as a float; raise ContractError unless it is a number from 0 to 100."""
    if type(percent) not in (int, float) or not 0 <= percent <= 100:
        raise ContractError(
            f"invalid percentage {percent!r}", field="progress", fix="pass a number from 0 to 100"
        )
    return float(percent)
