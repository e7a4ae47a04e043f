"""The async client: the methods of `Client`, awaited."""

from __future__ import annotations

import inspect
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

import httpx

from duly.client.operations import Operations, Upload
from duly.client.requests import JobFilters, JobSubmission, Payload, SubmitOptions, parse_id
from duly.client.responses import (
    JobStatus,
    RemoteArtifact,
    RemoteEvent,
    RemoteLogLine,
    RemoteResult,
    RemoteSnapshot,
)
from duly.client.retries import RequestPolicy
from duly.client.transport import Operation, OperationRun, ServiceAddress, run_steps_async

T = TypeVar("T")


class AsyncClient:
    """A client of the HTTP API for async code; see `Client`."""

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        deadline: float = 120.0,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        address = ServiceAddress.resolve(base_url, key)
        self._operations = Operations(RequestPolicy(timeout, retries, deadline))
        self._http = httpx.AsyncClient(base_url=address.url, headers=address.headers, transport=transport)

    def __repr__(self) -> str:
        return f"<AsyncClient {self._http.base_url}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def submit(
        self, job_type: str, payload: Payload | None = None, **options: Unpack[SubmitOptions]
    ) -> AsyncRemoteJob:
        """Submit a job; a repeated `idempotency_key` returns the job of the first call."""
        submission: JobSubmission = {
            "job_type": job_type,
            "payload": {} if payload is None else payload,
            **options,
        }
        return self.job(await self._run(self._operations.submit(submission)))

    async def submit_many(self, jobs: Iterable[JobSubmission]) -> list[AsyncRemoteJob]:
        """Submit many jobs, all or none; return them in order."""
        return [self.job(job_id) for job_id in await self._run(self._operations.submit_many(jobs))]

    def job(self, job_id: UUID | str) -> AsyncRemoteJob:
        """Return a job by its id, without a request."""
        return AsyncRemoteJob(self, parse_id("job_id", job_id))

    def jobs(self, **filters: Unpack[JobFilters]) -> AsyncIterator[JobStatus]:
        """Yield the jobs of the org, newest first; pages are fetched as needed."""
        return self._each(self._operations.jobs(filters))

    async def result_of(self, result_id: UUID | str, seq: int | None = None) -> RemoteResult:
        """Return the result of a permalink: the latest snapshot, or one by its number."""
        return await self._run(self._operations.result_of(parse_id("result_id", result_id), seq))

    def logs(self, job_id: UUID | str, attempt: int | None = None) -> AsyncIterator[RemoteLogLine]:
        """Yield the log lines of a job so far, attempt by attempt; pages are fetched as needed."""
        return self._each(self._operations.logs(parse_id("job_id", job_id), attempt))

    async def upload(self, source: Upload) -> str:
        """Upload bytes, the content of a path or of an open file; return the reference for payloads."""
        return await self._run(self._operations.upload(source))

    async def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Send any other request and return its JSON. Pass a key only where the route takes one."""
        return await self._run(self._operations.request(method, path, json, params, idempotency_key))

    async def _run(self, operation: Operation[T], on_value: Callable[[Any], object] | None = None) -> T:
        run = OperationRun(operation)
        async with aclosing(run_steps_async(self._http, run)) as values:
            async for value in values:
                awaitable = None if on_value is None else on_value(value)
                if inspect.isawaitable(awaitable):
                    await awaitable
        return run.result

    def _each(self, operation: Operation[None]) -> AsyncIterator[Any]:
        return run_steps_async(self._http, OperationRun(operation))


class AsyncRemoteJob:
    """A job of the service by its id; it holds no connection."""

    def __init__(self, client: AsyncClient, job_id: UUID) -> None:
        self._client = client
        self.job_id = job_id

    def __repr__(self) -> str:
        return f"<AsyncRemoteJob {self.job_id}>"

    async def status(self) -> JobStatus:
        """Return the status of the job; an unknown id raises."""
        return await self._run(self._operations.status(self.job_id))

    async def wait(
        self,
        timeout: timedelta | float | None = None,
        on_progress: Callable[[JobStatus], object] | None = None,
    ) -> JobStatus:
        """Wait until the job has ended; `on_progress` gets the first status and every change."""
        return await self._run(self._operations.wait(self.job_id, timeout), on_progress)

    def events(self, after: int = 0) -> AsyncIterator[RemoteEvent]:
        """Yield every event after a number once, in order, until the job has ended."""
        return self._client._each(self._operations.events(self.job_id, after))

    async def result(self, timeout: timedelta | float | None = None) -> Any:
        """Wait until the job has ended and return its result; a failed or canceled job raises."""
        return await self._run(self._operations.result(self.job_id, timeout))

    async def partials(self) -> list[RemoteSnapshot]:
        """Return the partial results so far, oldest first; they outlive a failed or canceled job."""
        return await self._run(self._operations.partials(self.job_id))

    def logs(self, attempt: int | None = None) -> AsyncIterator[RemoteLogLine]:
        """Yield the log lines so far, attempt by attempt."""
        return self._client.logs(self.job_id, attempt)

    async def artifacts(self) -> list[RemoteArtifact]:
        """Return the artifacts of the job by name."""
        return await self._run(self._operations.artifacts(self.job_id))

    async def download(self, name: str) -> bytes:
        """Return the content of an artifact, with its hash verified."""
        return await self._run(self._operations.download(self.job_id, name))

    async def save(self, name: str, to: str | os.PathLike[str]) -> Path:
        """Write an artifact to a path: the whole file with its hash verified, or nothing."""
        return await self._run(self._operations.save(self.job_id, name, to))

    async def cancel(self, reason: str) -> JobStatus:
        """Cancel the job: a queued one at once; a running one keeps its status until it stops. Idempotent."""
        return await self._run(self._operations.cancel(self.job_id, reason))

    async def subscribe(
        self, to: str | None = None, *, outcomes: Iterable[str] | None = None, locale: str = "en"
    ) -> UUID:
        """Notify the caller, or a recipient such as `email:anna@example.com`, of the outcome. Idempotent.

        Return the id of the subscription.
        """
        return await self._run(self._operations.subscribe(self.job_id, to, outcomes, locale))

    @property
    def _operations(self) -> Operations:
        return self._client._operations

    async def _run(self, operation: Operation[T], on_value: Callable[[Any], object] | None = None) -> T:
        return await self._client._run(operation, on_value)
