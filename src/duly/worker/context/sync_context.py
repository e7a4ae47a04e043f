"""The context of sync handlers (`ctx: SyncContext`): the same as `Context`, blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from duly.db.sync_connection import SyncConnection, sync_tenant
from duly.jobs.codec import HandlerContext
from duly.jobs.handle import SyncHandle
from duly.jobs.job import Call
from duly.jobs.store import Artifact
from duly.worker.claim import ClaimedJob
from duly.worker.context.chunks import Chunk, is_chunk_error, leaving
from duly.worker.context.context import Context
from duly.worker.context.transaction import BoundConnection
from duly.worker.job_log import JobLog

T = TypeVar("T")
R = TypeVar("R")


class SyncContext(HandlerContext):
    """For sync handlers. Each call waits for the worker's event loop; see `Context`."""

    for_async = False

    def __init__(self, inner: Context, loop: asyncio.AbstractEventLoop) -> None:
        self._inner = inner
        self._loop = loop

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    @property
    def job(self) -> ClaimedJob:
        """The job as it was claimed: ids, actor, trace, attempt."""
        return self._inner.job

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1; attempts that were given back do not count."""
        return self._inner.attempt

    @property
    def log(self) -> JobLog:
        """A logger whose lines carry the ids of the job and are stored with it."""
        return self._inner.log

    @property
    def cancel_requested(self) -> bool:
        """Whether a cancel was requested."""
        return self._inner.cancel_requested

    @property
    def draining(self) -> bool:
        """Whether the worker is about to stop."""
        return self._inner.draining

    def check_canceled(self) -> None:
        """Raise if a cancel was requested or the lease was lost. Call it between steps."""
        self._inner.check_canceled()

    def progress(self, percent: float, note: str | None = None) -> None:
        """Report progress. It never falls; cheap, because many calls become few writes."""
        # On the loop's thread, which owns the pending updates; a refusal is raised here.
        self._wait(_called(self._inner.progress, percent, note))

    def count(self, **counts: float) -> None:
        """Add to the summary counts of the job, under keys of the catalogue."""
        self._inner.count(**counts)

    def partial(self, value: Any, *, key: str | None = None, percent: float | None = None) -> int:
        """Store a partial result, readable at once; return its number."""
        return self._wait(self._inner.partial(value, key=key, percent=percent))

    def results(self) -> dict[str, Any]:
        """Return the results of all stored chunks by key, including those of earlier attempts."""
        return self._wait(self._inner.results())

    def chunks(
        self, items: Iterable[T], *, key: Callable[[T], object] | None = None
    ) -> Iterator[SyncChunk[T]]:
        """Yield the items whose chunk is not done yet. Work inside `with chunk:`."""
        chunks = self._inner.chunks(items, key=key)
        while True:
            chunk = self._wait(_next(chunks))
            if chunk is None:
                return
            yield SyncChunk(self, chunk)

    @property
    def checkpointed(self) -> Any:
        """The value of the last checkpoint, of this attempt or an earlier one; None if there was none."""
        return self._inner.checkpointed

    def checkpoint(self, value: Any) -> None:
        """Store a position: a later attempt finds it in `ctx.checkpointed`."""
        self._wait(self._inner.checkpoint(value))

    def session(self) -> AbstractContextManager[SyncConnection]:
        """Return a separate transaction, bound to the job's org by row level security."""
        self._inner.check_held()
        return sync_tenant(self._inner.services.url, self.job.org_id, self._inner.services.watch)

    def transaction(self) -> AbstractContextManager[SyncConnection]:
        """Return a transaction that commits with the completion of the job or not at all: use it last."""
        bound = BoundConnection(self._inner.services.url, self.job.org_id, self._inner.services.watch)
        self._inner.bind(bound)
        return bound.open()

    def enqueue(self, call: Call[R]) -> SyncHandle[R]:
        """Enqueue a child with the same org, actor and correlation, in `ctx.transaction()` if it is open."""
        [handle] = self.enqueue_many([call])
        return handle

    def enqueue_many(self, calls: Sequence[Call[R]]) -> list[SyncHandle[R]]:
        """Enqueue many children, all or none."""
        self._inner.check_held()
        bound = self._inner.bound
        conn = bound.conn if isinstance(bound, BoundConnection) else None
        return self._inner.services.app.enqueue_many_sync(calls, conn=conn)

    def artifact(
        self,
        name: str,
        data: bytes,
        *,
        content_type: str = "application/octet-stream",
        keep: timedelta | None = None,
    ) -> Artifact:
        """Store a file under the job; the same name again replaces it."""
        return self._wait(self._inner.artifact(name, data, content_type=content_type, keep=keep))

    def enter_chunk(self) -> AbstractContextManager[object]:
        """Enter a chunk; return its trace span."""
        return self._inner.chunk_entered()

    def finish_chunk(self, chunk: Chunk[Any], error: BaseException | None) -> bool:
        """Leave a chunk's block; return whether its error is handled."""
        if error is None:
            self._wait(self._inner.chunk_done(chunk))
            return False
        return is_chunk_error(error) and self._inner.chunk_failed(chunk, error)


class SyncChunk(Generic[T]):
    """Use as `with chunk: chunk.result = ...`. An error in the block fails the chunk."""

    def __init__(self, owner: SyncContext, inner: Chunk[T]) -> None:
        self._owner = owner
        self._inner = inner
        self.key = inner.key
        self.item = inner.item
        self.result: Any = None

    def __enter__(self) -> Self:
        self._span = self._owner.enter_chunk()
        self._span.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._inner.result = self.result
        with leaving(self._span, error):
            return self._owner.finish_chunk(self._inner, error)


async def _called(call: Callable[..., T], *arguments: Any) -> T:
    return call(*arguments)


async def _next(chunks: Any) -> Any:
    return await anext(chunks, None)
