"""One job that was asked for: watch it, wait for it, take its result, cancel it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from duly.blobs import BlobRef
from duly.client.context import checked_text, surroundings
from duly.model.errors import (
    AlreadyFinished,
    JobCanceled,
    JobFailed,
    MissingField,
    NotFound,
    UnknownJob,
    WaitTimeout,
)
from duly.model.job import JobEvent, JobSnapshot
from duly.model.states import Status
from duly.store import artifacts, history, jobs
from duly.store.artifacts import Artifact
from duly.store.session import retrying

if TYPE_CHECKING:
    from duly.client.app import App

R = TypeVar("R")
_FIRST_PAUSE, _LAST_PAUSE = 0.02, 1.0


@dataclass(frozen=True, slots=True)
class Partial:
    """A partial result: its number, the key of its chunk if it is one, and what was kept."""

    result_seq: int
    chunk_key: str | None
    value: Any
    created_at: datetime


class Handle(Generic[R]):
    """A job by its id, in its org. It holds no connection and costs nothing to keep."""

    def __init__(self, app: App, org_id: UUID, job_id: UUID, *, created: bool = False) -> None:
        self._app = app
        self.org_id = org_id
        self.job_id = job_id
        self.created = created
        """Whether this call made the job, or found the one that was first."""

    def __repr__(self) -> str:
        return f"<Handle {self.job_id}>"

    async def status(self) -> JobSnapshot:
        """The job as it is now; an unknown id raises."""
        async with self._app.tenant_session(self.org_id) as conn:
            found = await jobs.read(conn, self.org_id, self.job_id)
        if found is None:
            raise UnknownJob(
                f"no job {self.job_id} in this org", field="job_id", fix="check the id and the org"
            )
        return found

    async def wait(self, timeout: timedelta | float | None = None) -> JobSnapshot:
        """The job when it has ended, however it ended."""
        # Looked at before the clock starts: no time to wait is still time enough for an ended job.
        found = await self.status()
        if found.status.terminal:
            return found
        try:
            async with asyncio.timeout(_seconds(timeout)):
                async for found in self._looks():
                    if found.status.terminal:
                        break
        except TimeoutError:
            raise WaitTimeout(
                f"{self.job_id} is still active after {timeout}", fix="wait again, or longer"
            ) from None
        return found

    async def events(self, after: int = 0) -> AsyncIterator[JobEvent]:
        """Every event once, in order, until the job has ended."""
        # A look that finds the end comes before its page, so that no event is left behind.
        async for _ in self._looks():
            async for event in self._page(after):
                after = event.event_seq
                yield event

    async def _looks(self) -> AsyncIterator[JobSnapshot]:
        """The job again and again until it has ended; less often while nothing changes."""
        pause, changed_at = _FIRST_PAUSE, None
        while True:
            found = await self.status()
            yield found
            if found.status.terminal:
                return
            pause = min(pause * 2, _LAST_PAUSE) if found.updated_at == changed_at else _FIRST_PAUSE
            changed_at = found.updated_at
            await asyncio.sleep(pause)

    async def _page(self, after: int) -> AsyncIterator[JobEvent]:
        while True:
            async with self._app.tenant_session(self.org_id) as conn:
                page = await history.events_after(conn, self.org_id, self.job_id, after)
            for event in page:
                yield event
            if not page:
                return
            after = page[-1].event_seq

    async def result(self, timeout: timedelta | float | None = None) -> R:
        """Wait for the end and take the result; a failed or canceled job raises."""
        ended = await self.wait(timeout)
        if ended.status is Status.FAILED:
            raise JobFailed(ended.error_message or "", field=ended.error_code)
        if ended.status is Status.CANCELED:
            raise JobCanceled(ended.cancel_reason or "")
        return self._app.registry.get(ended.job_type).codec.decode_result(await self._final())  # type: ignore[no-any-return]

    async def partials(self) -> list[Partial]:
        """The partial results so far, oldest first; they stay when the job fails or is canceled."""
        await self.status()
        async with self._app.tenant_session(self.org_id) as conn:
            found = await history.partial_results(conn, self.org_id, self.job_id)
        return [
            Partial(s.result_seq, s.chunk_key, await self._loaded(s.payload, s.payload_ref), s.created_at)
            for s in found
        ]

    async def artifacts(self) -> list[Artifact]:
        """The files the job has left, by name."""
        await self.status()
        async with self._app.tenant_session(self.org_id) as conn:
            return await artifacts.of_job(conn, self.org_id, self.job_id)

    async def read(self, artifact: Artifact | str) -> bytes:
        """The content of one of its files, verified."""
        name = artifact if isinstance(artifact, str) else artifact.name
        for file in await self.artifacts():
            if file.name == name:
                blobs = (await self._app.ground()).blobs
                return await blobs.get(BlobRef.parse(file.blob_ref), org_id=self.org_id)
        raise NotFound(f"the job has no file {name!r}", field="artifact", fix="see handle.artifacts()")

    async def _loaded(self, value: Any, reference: str | None) -> Any:
        if reference is None:
            return value
        blobs = (await self._app.ground()).blobs
        return json.loads(await blobs.get(BlobRef.parse(reference), org_id=self.org_id))

    async def _final(self) -> Any:
        async with self._app.tenant_session(self.org_id) as conn:
            found = await history.final_result(conn, self.org_id, self.job_id)
        if found is None:
            raise UnknownJob(
                "its result is no longer kept", field="job_id", fix="read it before the retention is over"
            )
        return await self._loaded(*found)

    async def cancel(self, reason: str) -> Status:
        """Ask for the end: `canceled` at once if it waited, else the status it still has. Idempotent."""
        actor = surroundings().actor
        if actor is None:
            raise MissingField("missing", field="actor", fix="cancel inside duly.context(actor=...)")
        checked_text("reason", reason)
        by: Any = "user" if actor.type in ("user", "api_key", "operator") else "system"

        async def once() -> str | None:
            async with self._app.tenant_session(self.org_id) as conn:
                return await jobs.cancel(conn, self.org_id, self.job_id, by=by, reason=reason, actor=actor)

        answer = await retrying(once)
        if answer == "finished":
            raise AlreadyFinished(
                f"{self.job_id} has ended", field="job_id", fix="an ended job stays as it is"
            )
        return (await self.status()).status


def _seconds(timeout: timedelta | float | None) -> float | None:
    return timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
