"""The client for code that is not async."""

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

from duly.remote import files
from duly.remote.answers import Artifact, Event, JobStatus, LogLine, Result, Snapshot
from duly.remote.asking import Patience
from duly.remote.bodies import Choices, Filters, Payload, Submission, identifier
from duly.remote.line import told
from duly.remote.place import Place
from duly.remote.steps import Course, Flow
from duly.remote.verbs import Verbs

T = TypeVar("T")


class Client:
    """The HTTP API of a service; may be shared by threads.

    `timeout` is how many seconds an attempt may be quiet, `deadline` how many a call may take with all its
    `retries`. Without an address or a key, `DULY_API_URL` and `DULY_API_KEY` say it.
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
        place = Place.of(base_url, key)
        self._verbs = Verbs(Patience(timeout, retries, deadline))
        self._http = httpx.Client(base_url=place.url, headers=place.headers, transport=transport)

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

    def submit(self, job_type: str, payload: Payload | None = None, **choices: Unpack[Choices]) -> RemoteJob:
        """Have a job done: a new one, unless the `idempotency_key` is one of an earlier call."""
        said: Submission = {"job_type": job_type, "payload": {} if payload is None else payload, **choices}
        return self.job(self._run(self._verbs.submit(said)))

    def submit_many(self, jobs: Iterable[Submission]) -> list[RemoteJob]:
        """Have many jobs done, all or none, in their order."""
        return [self.job(job_id) for job_id in self._run(self._verbs.submit_many(jobs))]

    def job(self, job_id: UUID | str) -> RemoteJob:
        """A job by its id; nothing is asked yet."""
        return RemoteJob(self, identifier("job_id", job_id))

    def jobs(self, **filters: Unpack[Filters]) -> Iterator[JobStatus]:
        """The jobs of the org, the newest first; pages are read as they are needed."""
        return self._each(self._verbs.jobs(filters))

    def result_of(self, result_id: UUID | str, seq: int | None = None) -> Result:
        """What is kept under a permalink: the latest snapshot, or one by its number."""
        return self._run(self._verbs.result_of(identifier("result_id", result_id), seq))

    def logs(self, job_id: UUID | str, attempt: int | None = None) -> Iterator[LogLine]:
        """What the handler of a job has logged so far, attempt by attempt; pages are read as needed."""
        return self._each(self._verbs.logs(identifier("job_id", job_id), attempt))

    def upload(self, source: files.Upload) -> str:
        """Keep bytes, the content of a path or of an open file; the reference is for payloads."""
        return self._run(self._verbs.upload(source))

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        params: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
    ) -> Any:
        """Anything else of the API: the JSON of the answer. Give a key only where the route takes one."""
        return self._run(self._verbs.request(method, path, json, params, idempotency_key))

    def _run(self, flow: Flow[T], tell: Callable[[Any], object] | None = None) -> T:
        course = Course(flow)
        with closing(told(self._http, course)) as values:
            for value in values:
                if tell is not None:
                    tell(value)
        return course.result

    def _each(self, flow: Flow[None]) -> Iterator[Any]:
        return told(self._http, Course(flow))


class RemoteJob:
    """A job of the service by its id. It holds no connection and costs nothing to keep."""

    def __init__(self, client: Client, job_id: UUID) -> None:
        self._client = client
        self.job_id = job_id

    def __repr__(self) -> str:
        return f"<RemoteJob {self.job_id}>"

    def status(self) -> JobStatus:
        """The job as it is now; an unknown id raises."""
        return self._run(self._verbs.status(self.job_id))

    def wait(
        self,
        timeout: timedelta | float | None = None,
        on_progress: Callable[[JobStatus], object] | None = None,
    ) -> JobStatus:
        """The job when it has ended, however it ended. `on_progress` sees it first, and at every change."""
        return self._run(self._verbs.wait(self.job_id, timeout), on_progress)

    def events(self, after: int = 0) -> Iterator[Event]:
        """Every event after this number once, in order, until the job has ended."""
        return self._client._each(self._verbs.events(self.job_id, after))

    def result(self, timeout: timedelta | float | None = None) -> Any:
        """Wait for the end and take the result; a failed or canceled job raises."""
        return self._run(self._verbs.result(self.job_id, timeout))

    def partials(self) -> list[Snapshot]:
        """The partial results so far, oldest first; they stay when the job fails or is canceled."""
        return self._run(self._verbs.partials(self.job_id))

    def logs(self, attempt: int | None = None) -> Iterator[LogLine]:
        """What its handler has logged so far, attempt by attempt."""
        return self._client.logs(self.job_id, attempt)

    def artifacts(self) -> list[Artifact]:
        """The files the job has left, by name."""
        return self._run(self._verbs.artifacts(self.job_id))

    def download(self, name: str) -> bytes:
        """The content of one of its files, verified."""
        return self._run(self._verbs.download(self.job_id, name))

    def save(self, name: str, to: str | os.PathLike[str]) -> Path:
        """Write one of its files to a path: all of it, verified, or nothing."""
        return self._run(self._verbs.save(self.job_id, name, to))

    def cancel(self, reason: str) -> JobStatus:
        """Ask for the end: `canceled` at once if it waited, else the status it still has. Idempotent."""
        return self._run(self._verbs.cancel(self.job_id, reason))

    def subscribe(
        self, to: str | None = None, *, outcomes: Iterable[str] | None = None, locale: str = "en"
    ) -> UUID:
        """Have somebody told how it ends: the caller, or `email:anna@example.com`. Idempotent; its id."""
        return self._run(self._verbs.subscribe(self.job_id, to, outcomes, locale))

    @property
    def _verbs(self) -> Verbs:
        return self._client._verbs

    def _run(self, flow: Flow[T], tell: Callable[[Any], object] | None = None) -> T:
        return self._client._run(flow, tell)
