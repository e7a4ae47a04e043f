"""The verbs of both clients, as flows."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel

from duly.model.errors import ContractError, JobCanceled, JobFailed, UnknownResult
from duly.model.states import Status
from duly.remote import answers, files
from duly.remote.answers import Artifact, JobStatus, Result, Snapshot
from duly.remote.asking import answered, read
from duly.remote.bodies import Filters, Submission, header, query, submission, written
from duly.remote.problems import bad_answer
from duly.remote.steps import Asked, Flow, Tell
from duly.remote.watching import Watching

M = TypeVar("M", bound=BaseModel)
_SNAPSHOTS = _LINES = 500
_IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_JSON = {"content-type": "application/json"}


class Verbs(Watching):
    """Everything that can be asked for, with the patience of one client."""

    def submit(self, said: Submission) -> Flow[UUID]:
        """Have a job done."""
        body = submission(said)
        key = header("idempotency_key", body.pop("idempotency_key"))
        asked = _posted("/v1/jobs", body, {"idempotency-key": key})
        return read(answers.Accepted, (yield from answered(asked, self.patience))).job_id

    def submit_many(self, said: Iterable[Submission]) -> Flow[list[UUID]]:
        """Have many jobs done, all or none."""
        asked = _posted("/v1/jobs/bulk", {"jobs": [submission(one) for one in said]})
        told = read(answers.BulkAccepted, (yield from answered(asked, self.patience)))
        return [one.job_id for one in told.jobs]

    def jobs(self, filters: Filters) -> Flow[None]:
        """Tells the jobs, page by page."""
        params = query(filters)
        while True:
            page = yield from self._got(answers.JobPage, "/v1/jobs", params)
            for job in page.jobs:
                yield Tell(job)
            if page.after is None:
                return
            params["after"] = page.after

    def cancel(self, job_id: UUID, reason: str) -> Flow[JobStatus]:
        """Ask for its end; asked twice, it is the same."""
        asked = _posted(f"/v1/jobs/{job_id}/cancel", {"reason": reason})
        return read(JobStatus, (yield from answered(asked, self.patience)))

    def subscribe(
        self, job_id: UUID, to: str | None, outcomes: Iterable[str] | None, locale: str
    ) -> Flow[UUID]:
        """Have somebody told how it ends; asked twice, it is the same."""
        body: dict[str, Any] = {"job_id": str(job_id), "locale": locale}
        body |= {} if to is None else {"to": to}
        body |= {} if outcomes is None else {"outcomes": [*outcomes]}
        asked = _posted("/v1/subscriptions", body)
        return read(answers.Subscribed, (yield from answered(asked, self.patience))).subscription_id

    def result(self, job_id: UUID, timeout: timedelta | float | None) -> Flow[Any]:
        """Wait for its end and take the result."""
        job = yield from self.wait(job_id, timeout)
        if job.status == Status.FAILED:
            raise JobFailed(job.error_message or "", field=job.error_code)
        if job.status == Status.CANCELED:
            raise JobCanceled(job.cancel_reason or "")
        found = None if job.result_id is None else (yield from self.result_of(job.result_id))
        if found is None or found.snapshot is None or found.snapshot.kind != "final":
            raise UnknownResult("its result is no longer kept", field="job_id", fix="read it earlier")
        return found.snapshot.value

    def result_of(self, result_id: UUID, seq: int | None = None) -> Flow[Result]:
        """What is kept under a permalink."""
        return (yield from self._got(Result, f"/v1/results/{result_id}", {} if seq is None else {"seq": seq}))

    def partials(self, job_id: UUID) -> Flow[list[Snapshot]]:
        """The partial results so far."""
        found: list[Snapshot] = []
        result_id = (yield from self.status(job_id)).result_id
        params = {"after": 0, "limit": _SNAPSHOTS}
        while result_id is not None:
            page = yield from self._got(answers.SnapshotPage, f"/v1/results/{result_id}/snapshots", params)
            found += [one for one in page.snapshots if one.kind == "partial"]
            params["after"] = page.after
            if not page.snapshots:
                break
        return found

    def logs(self, job_id: UUID, attempt: int | None) -> Flow[None]:
        """Tells the lines that its handler has logged, page by page."""
        params: dict[str, Any] = {"limit": _LINES} | ({} if attempt is None else {"attempt": attempt})
        while True:
            page = yield from self._got(answers.LogPage, f"/v1/jobs/{job_id}/logs", params)
            for line in page.lines:
                yield Tell(line)
            if not page.lines:
                return
            params["after"] = page.after

    def artifacts(self, job_id: UUID) -> Flow[list[Artifact]]:
        """The files it has left."""
        return (yield from self._got(answers.Artifacts, f"/v1/jobs/{job_id}/artifacts")).artifacts

    def upload(self, source: files.Upload) -> Flow[str]:
        """Keep bytes; the reference."""
        return files.upload(source, self.patience)

    def download(self, job_id: UUID, name: str) -> Flow[bytes]:
        """The content of a file it has left."""
        return files.download(job_id, name, self.patience)

    def save(self, job_id: UUID, name: str, to: str | os.PathLike[str]) -> Flow[Path]:
        """The same, written to a path."""
        return files.save(job_id, name, to, self.patience)

    def request(
        self, method: str, path: str, body: Any, params: Mapping[str, Any] | None, key: str | None
    ) -> Flow[Any]:
        """Anything else of the API. The key of the caller goes to the service and nowhere else."""
        if not path.startswith("/") or path.startswith("//"):
            raise ContractError("not a path of the service", field="path", fix="write it as /v1/...")
        headers = {"idempotency-key": header("idempotency_key", key)} if key else {}
        content = None if body is None else written(body)
        asked = Asked(
            method.upper(),
            path,
            {name: value for name, value in (params or {}).items() if value is not None},
            headers if content is None else {**headers, **_JSON},
            content,
            again=key is not None or method.upper() in _IDEMPOTENT,
        )
        answer = yield from answered(asked, self.patience)
        try:
            return json.loads(answer.content) if answer.content else None
        except ValueError:
            raise bad_answer(answer, "JSON") from None

    def _got(self, kind: type[M], path: str, params: Mapping[str, Any] | None = None) -> Flow[M]:
        return read(kind, (yield from answered(Asked("GET", path, params or {}), self.patience)))


def _posted(path: str, body: Any, headers: Mapping[str, str] | None = None) -> Asked:
    return Asked("POST", path, headers={**_JSON, **(headers or {})}, content=written(body))
