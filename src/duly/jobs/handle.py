"""Handles of jobs: status, events, results, artifacts and cancellation; async and synchronous."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from duly.blobs import BlobRef
from duly.core.errors import (
    AlreadyFinished,
    ConfigurationError,
    JobCanceled,
    JobFailed,
    MissingField,
    NotFound,
    UnknownJob,
    WaitTimeout,
)
from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import Status
from duly.db.database import retry_transaction
from duly.jobs import store as job_store
from duly.jobs.request_context import checked_text
from duly.jobs.store import Artifact

if TYPE_CHECKING:
    from duly.jobs.application import App


R = TypeVar("R")
T = TypeVar("T")
_MIN_POLL_INTERVAL, _MAX_POLL_INTERVAL = 0.02, 1.0


@dataclass(frozen=True, slots=True)
class PartialResult:
    """A partial result: its number, the key of its chunk if it has one, and its value."""

    result_seq: int
    chunk_key: str | None
    value: Any
    created_at: datetime


class Handle(Generic[R]):
    """A job of an org by its id. It holds no connection."""

    __slots__ = ("__weakref__", "_app", "_job_id", "created", "org_id")

    def __init__(self, app: App, org_id: UUID, job_id: UUID | str, *, created: bool = False) -> None:
        self._app = app
        self.org_id = org_id
        self._job_id = job_id
        self.created = created
        """Whether the call created the job, or found an existing one by its idempotency key."""

    @property
    def job_id(self) -> UUID:
        """The id of the job."""
        if isinstance(self._job_id, str):  # most handles of a bulk enqueue are never read
            self._job_id = UUID(self._job_id)
        return self._job_id

    def __repr__(self) -> str:
        return f"<Handle {self.job_id}>"

    async def status(self) -> JobSnapshot:
        """Return the current state of the job; an unknown id raises."""
        async with self._app.tenant_session(self.org_id) as conn:
            found = await job_store.read_job(conn, self.org_id, self.job_id)
        if found is None:
            raise UnknownJob(
                f"no job {self.job_id} in this org", field="job_id", fix="check the id and the org"
            )
        return found

    async def wait(self, timeout: timedelta | float | None = None) -> JobSnapshot:
        """Wait until the job has ended in any way, and return it."""
        # Read before the timeout starts: a timeout of zero suffices for an ended job.
        job = await self.status()
        if job.status.terminal:
            return job
        try:
            async with asyncio.timeout(_seconds(timeout)):
                async for job in self._poll():
                    if job.status.terminal:
                        break
        except TimeoutError:
            raise WaitTimeout(
                f"{self.job_id} is still active after {timeout}", fix="wait again, or longer"
            ) from None
        return job

    async def events(self, after: int = 0) -> AsyncIterator[JobEvent]:
        """Yield every event once, in order, until the job has ended."""
        # The status is read before the events, so that the events of an ended job are complete.
        async for _ in self._poll():
            async for event in self._events_after(after):
                after = event.event_seq
                yield event

    async def _poll(self) -> AsyncIterator[JobSnapshot]:
        """Yield the job until it has ended; less often while it does not change."""
        interval, changed_at = _MIN_POLL_INTERVAL, None
        while True:
            job = await self.status()
            yield job
            if job.status.terminal:
                return
            unchanged = job.updated_at == changed_at
            interval = min(interval * 2, _MAX_POLL_INTERVAL) if unchanged else _MIN_POLL_INTERVAL
            changed_at = job.updated_at
            await asyncio.sleep(interval)

    async def _events_after(self, after: int) -> AsyncIterator[JobEvent]:
        while True:
            async with self._app.tenant_session(self.org_id) as conn:
                page = await job_store.read_events_after(conn, self.org_id, self.job_id, after)
            for event in page:
                yield event
            if not page:
                return
            after = page[-1].event_seq

    async def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the end and return the result; a failed or canceled job raises."""
        ended = await self.wait(timeout)
        if ended.status is Status.FAILED:
            raise JobFailed(ended.error_message or "", field=ended.error_code)
        if ended.status is Status.CANCELED:
            raise JobCanceled(ended.cancel_reason or "")
        return self._app.registry.get(ended.job_type).codec.decode_result(await self._final())  # type: ignore[no-any-return]

    async def partials(self) -> list[PartialResult]:
        """Return the partial results so far, oldest first; they stay when the job fails or is canceled."""
        await self.status()
        async with self._app.tenant_session(self.org_id) as conn:
            found = await job_store.read_partial_results(conn, self.org_id, self.job_id)
        return [
            PartialResult(
                s.result_seq, s.chunk_key, await self._loaded(s.payload, s.payload_ref), s.created_at
            )
            for s in found
        ]

    async def artifacts(self) -> list[Artifact]:
        """Return the artifacts of the job, by name."""
        await self.status()
        async with self._app.tenant_session(self.org_id) as conn:
            return await job_store.list_artifacts(conn, self.org_id, self.job_id)

    async def read(self, artifact: Artifact | str) -> bytes:
        """Return the content of an artifact, verified."""
        name = artifact if isinstance(artifact, str) else artifact.name
        for one in await self.artifacts():
            if one.name == name:
                blobs = (await self._app.resources()).blobs
                return await blobs.get(BlobRef.parse(one.blob_ref), org_id=self.org_id)
        raise NotFound(f"the job has no artifact {name!r}", field="artifact", fix="see handle.artifacts()")

    async def _loaded(self, value: Any, reference: str | None) -> Any:
        if reference is None:
            return value
        blobs = (await self._app.resources()).blobs
        return json.loads(await blobs.get(BlobRef.parse(reference), org_id=self.org_id))

    async def _final(self) -> Any:
        async with self._app.tenant_session(self.org_id) as conn:
            found = await job_store.read_final_result(conn, self.org_id, self.job_id)
        if found is None:
            raise UnknownJob(
                "retention deleted its result", field="job_id", fix="read results within keep_final_results"
            )
        return await self._loaded(*found)

    async def cancel(self, reason: str) -> Status:
        """Cancel a queued job at once, or request it from the worker. Return the status; idempotent."""
        actor = self._app.request_context().actor
        if actor is None:
            raise MissingField("missing", field="actor", fix="cancel inside duly.context(actor=...)")
        checked_text("reason", reason)
        by: Any = "user" if actor.type in ("user", "api_key", "operator") else "system"

        async def once() -> str | None:
            async with self._app.tenant_session(self.org_id) as conn:
                return await job_store.cancel_job(
                    conn, self.org_id, self.job_id, by=by, reason=reason, actor=actor
                )

        answer = await retry_transaction(once)
        if answer == "finished":
            raise AlreadyFinished(
                f"{self.job_id} has already finished", field="job_id", fix="finished jobs never change"
            )
        return (await self.status()).status


def _seconds(timeout: timedelta | float | None) -> float | None:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout


class Portal:
    """An event loop in a thread, for synchronous callers; started on first use, also after a fork."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.current_thread()
        self._pid = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the event loop and wait for its result."""
        loop = self._running_loop()
        if threading.current_thread() is self._thread:
            work.close()
            raise ConfigurationError(
                "called on the thread of the event loop itself", fix="await the async method instead"
            )
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork inherits no other threads: the inherited loop does not run.
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                self._thread = threading.Thread(
                    target=_serve, args=(self._loop,), name="duly-portal", daemon=True
                )
                self._thread.start()
                # A script may end without closing the application.
                atexit.register(self.stop)
            return self._loop

    def stop(self) -> None:
        """Stop the loop; the next use starts a new one."""
        with self._lock:
            if self._loop is not None and self._pid == os.getpid():
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join()
            self._loop = None
            atexit.unregister(self.stop)


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.run_until_complete(_cancel_tasks())
    loop.close()


async def _cancel_tasks() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class SyncHandle(Generic[R]):
    """A `Handle` for synchronous code."""

    def __init__(self, handle: Handle[R], portal: Portal) -> None:
        self._handle = handle
        self._portal = portal
        self.job_id = handle.job_id
        self.org_id = handle.org_id
        self.created = handle.created

    def __repr__(self) -> str:
        return f"<SyncHandle {self.job_id}>"

    def status(self) -> JobSnapshot:
        """Return the current state of the job; an unknown id raises."""
        return self._portal.run(self._handle.status())

    def wait(self, timeout: timedelta | float | None = None) -> JobSnapshot:
        """Wait until the job has ended in any way, and return it."""
        return self._portal.run(self._handle.wait(timeout))

    def events(self, after: int = 0) -> Iterator[JobEvent]:
        """Yield every event once, in order, until the job has ended."""
        stream = self._handle.events(after)
        while (event := self._portal.run(_next(stream))) is not None:
            yield event

    def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the end and return the result; a failed or canceled job raises."""
        return self._portal.run(self._handle.result(timeout))

    def partials(self) -> list[PartialResult]:
        """Return the partial results so far, oldest first."""
        return self._portal.run(self._handle.partials())

    def artifacts(self) -> list[Artifact]:
        """Return the artifacts of the job, by name."""
        return self._portal.run(self._handle.artifacts())

    def read(self, artifact: Artifact | str) -> bytes:
        """Return the content of an artifact, verified."""
        return self._portal.run(self._handle.read(artifact))

    def cancel(self, reason: str) -> Status:
        """Cancel the job; see `Handle.cancel`."""
        return self._portal.run(self._handle.cancel(reason))


async def _next(stream: AsyncIterator[JobEvent]) -> JobEvent | None:
    return await anext(stream, None)
