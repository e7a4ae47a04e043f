"""The blocking client."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
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
from duly.client.transport import Operation, OperationRun, ServiceAddress, run_steps

T = TypeVar("T")


class Client:
    """A client of the HTTP API; threads may share it.

    An attempt may be silent for `timeout` seconds; a call with all its `retries` may take `deadline` seconds.
    URL and key default to `DULY_API_URL` and `DULY_API_KEY`.
    """

    def __init__(
        self,
        base_url: str | None = None,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        deadline: float = 120.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        address = ServiceAddress.resolve(base_url, key)
        self._operations = Operations(RequestPolicy(timeout, retries, deadline))
        self._http = httpx.Client(base_url=address.url, headers=address.headers, transport=transport)

    def __repr__(self) -> str:
        return f"<Client {self._http.base_url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def submit(
        self, job_type: str, payload: Payload | None = None, **options: Unpack[SubmitOptions]
    ) -> RemoteJob:
        """Submit a job; a repeated `idempotency_key` returns the job of the first call."""
        submission: JobSubmission = {
            "job_type": job_type,
            "payload": {} if payload is None else payload,
            **options,
        }
        return self.job(self._run(self._operations.submit(submission)))

    def submit_many(self, jobs: Iterable[JobSubmission]) -> list[RemoteJob]:
        """Submit many jobs, all or none; return them in order."""
        return [self.job(job_id) for job_id in self._run(self._operations.submit_many(jobs))]

    def job(self, job_id: UUID | str) -> RemoteJob:
        """Return a job by its id, without a request."""
        return RemoteJob(self, parse_id("job_id", job_id))

    def jobs(self, **filters: Unpack[JobFilters]) -> Iterator[JobStatus]:
        """Yield the jobs of the org, newest first; pages are fetched as needed."""
        return self._each(self._operations.jobs(filters))

    def result_of(self, result_id: UUID | str, seq: int | None = None) -> RemoteResult:
        """Return the result of a permalink: the latest snapshot, or one by its number."""
        return self._run(self._operations.result_of(parse_id("result_id", result_id), seq))

    def logs(self, job_id: UUID | str, attempt: int | None = None) -> Iterator[RemoteLogLine]:
        """Yield the log lines of a job so far, attempt by attempt; pages are fetched as needed."""
        return self._each(self._operations.logs(parse_id("job_id", job_id), attempt))

    def upload(self, source: Upload) -> str:
        """Upload bytes, the content of a path or of an open file; return the reference for payloads."""
        return self._run(self._operations.upload(source))

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Send any other request and return its JSON. Pass a key only where the route takes one."""
        return self._run(self._operations.request(method, path, json, params, idempotency_key))

    def _run(self, operation: Operation[T], on_value: Callable[[Any], object] | None = None) -> T:
        run = OperationRun(operation)
        with closing(run_steps(self._http, run)) as values:
            for value in values:
                if on_value is not None:
                    on_value(value)
        return run.result

    def _each(self, operation: Operation[None]) -> Iterator[Any]:
        return run_steps(self._http, OperationRun(operation))


class RemoteJob:
    """A job of the service by its id; it holds no connection."""

    def __init__(self, client: Client, job_id: UUID) -> None:
        self._client = client
        self.job_id = job_id

    def __repr__(self) -> str:
        return f"<RemoteJob {self.job_id}>"

    def status(self) -> JobStatus:
        """Return the status of the job; an unknown id raises."""
        return self._run(self._operations.status(self.job_id))

    def wait(
        self,
        timeout: timedelta | float | None = None,
        on_progress: Callable[[JobStatus], object] | None = None,
    ) -> JobStatus:
        """Wait until the job has ended; `on_progress` gets the first status and every change."""
        return self._run(self._operations.wait(self.job_id, timeout), on_progress)

    def events(self, after: int = 0) -> Iterator[RemoteEvent]:
        """Yield every event after a number once, in order, until the job has ended."""
        return self._client._each(self._operations.events(self.job_id, after))

    def result(self, timeout: timedelta | float | None = None) -> Any:
        """Wait until the job has ended and return its result; a failed or canceled job raises."""
        return self._run(self._operations.result(self.job_id, timeout))

    def partials(self) -> list[RemoteSnapshot]:
        """Return the partial results so far, oldest first; they outlive a failed or canceled job."""
        return self._run(self._operations.partials(self.job_id))

    def logs(self, attempt: int | None = None) -> Iterator[RemoteLogLine]:
        """Yield the log lines so far, attempt by attempt."""
        return self._client.logs(self.job_id, attempt)

    def artifacts(self) -> list[RemoteArtifact]:
        """Return the artifacts of the job by name."""
        return self._run(self._operations.artifacts(self.job_id))

    def download(self, name: str) -> bytes:
        """Return the content of an artifact, with its hash verified."""
        return self._run(self._operations.download(self.job_id, name))

    def save(self, name: str, to: str | os.PathLike[str]) -> Path:
        """Write an artifact to a path: the whole file with its hash verified, or nothing."""
        return self._run(self._operations.save(self.job_id, name, to))

    def cancel(self, reason: str) -> JobStatus:
        """Cancel the job: a queued one at once; a running one keeps its status until it stops. Idempotent."""
        return self._run(self._operations.cancel(self.job_id, reason))

    def subscribe(
        self, to: str | None = None, *, outcomes: Iterable[str] | None = None, locale: str = "en"
    ) -> UUID:
        """Notify the caller, or a recipient such as `email:anna@example.com`, of the outcome. Idempotent.

        Return the id of the subscription.
        """
        return self._run(self._operations.subscribe(self.job_id, to, outcomes, locale))

    @property
    def _operations(self) -> Operations:
        return self._client._operations

    def _run(self, operation: Operation[T], on_value: Callable[[Any], object] | None = None) -> T:
        return self._client._run(operation, on_value)
