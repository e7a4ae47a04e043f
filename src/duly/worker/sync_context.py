"""What a handler that is not async is given: the same, blocking."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from duly.client.handling import HandlerContext
from duly.client.job import Call
from duly.client.sync import SyncHandle
from duly.store.artifacts import Artifact
from duly.store.claims import ClaimedJob
from duly.store.sync import SyncConnection, tenant_session
from duly.worker.chunks import Chunk, is_chunks_own, leaving
from duly.worker.context import Context
from duly.worker.job_log import JobLog
from duly.worker.transaction import BoundConnection

T = TypeVar("T")
R = TypeVar("R")


class SyncContext(HandlerContext):
    """For handlers that are not async. Each call waits for the worker's loop; see `Context`."""

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
        """Which try this is, from 1."""
        return self._inner.attempt

    @property
    def log(self) -> JobLog:
        """A logger whose lines carry the ids of the job, and are kept with it."""
        return self._inner.log

    @property
    def cancel_requested(self) -> bool:
        """Whether somebody asked for the end."""
        return self._inner.cancel_requested

    @property
    def draining(self) -> bool:
        """Whether the worker is about to stop."""
        return self._inner.draining

    def check_canceled(self) -> None:
        """Stop here if somebody asked for it, or if the job is no longer ours."""
        self._inner.check_canceled()

    def progress(self, percent: float, note: str | None = None) -> None:
        """How far it is. Never falls; cheap: many calls become few writes."""
        # Checked on this thread, so that the handler sees the refusal; noted on the loop's.
        self._wait(_called(self._inner.progress, percent, note))

    def count(self, **counts: float) -> None:
        """Add to the summary counts of the job, under keys of the catalogue."""
        self._inner.count(**counts)

    def partial(self, value: Any, *, key: str | None = None, percent: float | None = None) -> int:
        """Keep a partial result: readable at once, with its event and the progress. Its number."""
        return self._wait(self._inner.partial(value, key=key, percent=percent))

    def results(self) -> dict[str, Any]:
        """The results of all kept chunks by their key."""
        return self._wait(self._inner.results())

    def chunks(
        self, items: Iterable[T], *, key: Callable[[T], object] | None = None
    ) -> Iterator[SyncChunk[T]]:
        """The items one by one, without those whose chunk is kept already. Work inside `with chunk:`."""
        chunks = self._inner.chunks(items, key=key)
        while True:
            chunk = self._wait(_next(chunks))
            if chunk is None:
                return
            yield SyncChunk(self, chunk)

    @property
    def checkpointed(self) -> Any:
        """What the last checkpoint kept, of this attempt or an earlier one."""
        return self._inner.checkpointed

    def checkpoint(self, value: Any) -> None:
        """Keep where you are: a later attempt finds it in `ctx.checkpointed`."""
        self._wait(self._inner.checkpoint(value))

    def session(self) -> AbstractContextManager[SyncConnection]:
        """A transaction of its own, bound to the job's org by row level security."""
        self._inner.check_held()
        return tenant_session(self._inner.shop.url, self.job.org_id, self._inner.shop.watch)

    def transaction(self) -> AbstractContextManager[SyncConnection]:
        """A transaction that commits with the completion of the job, or not at all: the last thing you do."""
        bound = BoundConnection(self._inner.shop.url, self.job.org_id, self._inner.shop.watch)
        self._inner.bind(bound)
        return bound.opened()

    def enqueue(self, call: Call[R]) -> SyncHandle[R]:
        """Have a child done: same org, actor and correlation. Inside `ctx.transaction()` it goes with it."""
        [handle] = self.enqueue_many([call])
        return handle

    def enqueue_many(self, calls: Sequence[Call[R]]) -> list[SyncHandle[R]]:
        """Have many children done, all or none."""
        self._inner.check_held()
        bound = self._inner.bound
        conn = bound.conn if isinstance(bound, BoundConnection) else None
        return self._inner.shop.app.enqueue_many_sync(calls, conn=conn)

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
        """Begin a chunk's block."""
        return self._inner.chunk_entered()

    def finish_chunk(self, chunk: Chunk[Any], error: BaseException | None) -> bool:
        """Leave a chunk's block; whether its error is dealt with."""
        if error is None:
            self._wait(self._inner.chunk_done(chunk))
            return False
        return is_chunks_own(error) and self._inner.chunk_failed(chunk, error)


class SyncChunk(Generic[T]):
    """Use as `with chunk: chunk.result = ...`. What its block raises is the chunk's failure."""

    def __init__(self, owner: SyncContext, inner: Chunk[T]) -> None:
        self._owner = owner
        self._inner = inner
        self.key = inner.key
        self.item = inner.item
        self.result: Any = None

    def __enter__(self) -> Self:
        self._around = self._owner.enter_chunk()
        self._around.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self._inner.result = self.result
        with leaving(self._around, error):
            return self._owner.finish_chunk(self._inner, error)


async def _called(call: Callable[..., T], *arguments: Any) -> T:
    return call(*arguments)


async def _next(chunks: Any) -> Any:
    return await anext(chunks, None)
