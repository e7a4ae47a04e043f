"""The operations of both clients."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote
from uuid import UUID, uuid4

from pydantic import BaseModel

from duly.client.problems import invalid_response
from duly.client.requests import (
    JobFilters,
    JobSubmission,
    encode_json,
    filter_params,
    header_value,
    submission_body,
)
from duly.client.responses import (
    AcceptedJob,
    CreatedSubscription,
    JobStatus,
    RemoteArtifact,
    RemoteLogLine,
    RemoteResult,
    RemoteSnapshot,
    StoredBlob,
    page_of,
)
from duly.client.retries import parse, send
from duly.client.transport import Emit, Operation, RequestSpec, RunBlocking
from duly.client.watching import WatchOperations
from duly.core.errors import ContractError, JobCanceled, JobFailed, UnknownResult
from duly.core.states import Status

M = TypeVar("M", bound=BaseModel)
Upload = bytes | str | os.PathLike[str] | BinaryIO
_PAGE_SIZE = 500
_IDEMPOTENT_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
_JSON = {"content-type": "application/json"}
_DOT_SEGMENT = re.compile(r"(?<![^/])\.{1,2}(?![^/])")
_SHA256 = re.compile(r'"([0-9a-f]{64})"')


class Operations(WatchOperations):
    """All operations, with the request policy of one client."""

    def submit(self, submission: JobSubmission) -> Operation[UUID]:
        """Submit a job."""
        body = submission_body(submission)
        key = header_value("idempotency_key", body.pop("idempotency_key"))
        return (yield from self._post(AcceptedJob, "/v1/jobs", body, {"idempotency-key": key})).job_id

    def submit_many(self, submissions: Iterable[JobSubmission]) -> Operation[list[UUID]]:
        """Submit many jobs, all or none."""
        body = {"jobs": [submission_body(one) for one in submissions]}
        page = yield from self._post(page_of("jobs", AcceptedJob), "/v1/jobs/bulk", body)
        return [job.job_id for job in page.jobs]

    def jobs(self, filters: JobFilters) -> Operation[None]:
        """Emit the jobs, page by page."""
        return self._each("/v1/jobs", "jobs", JobStatus, filter_params(filters))

    def cancel(self, job_id: UUID, reason: str) -> Operation[JobStatus]:
        """Cancel a job. Idempotent."""
        return self._post(JobStatus, f"/v1/jobs/{job_id}/cancel", {"reason": reason})

    def subscribe(
        self, job_id: UUID, to: str | None, outcomes: Iterable[str] | None, locale: str
    ) -> Operation[UUID]:
        """Subscribe a recipient to the outcome of a job. Idempotent."""
        body: dict[str, Any] = {"job_id": str(job_id), "locale": locale}
        body |= {} if to is None else {"to": to}
        body |= {} if outcomes is None else {"outcomes": [*outcomes]}
        created = yield from self._post(CreatedSubscription, "/v1/subscriptions", body)
        return created.subscription_id

    def result(self, job_id: UUID, timeout: timedelta | float | None) -> Operation[Any]:
        """Wait until a job has ended, and return its result."""
        job = yield from self.wait(job_id, timeout)
        if job.status == Status.FAILED:
            raise JobFailed(job.error_message or "", field=job.error_code)
        if job.status == Status.CANCELED:
            raise JobCanceled(job.cancel_reason or "")
        result = None if job.result_id is None else (yield from self.result_of(job.result_id))
        if result is None or result.snapshot is None or result.snapshot.kind != "final":
            raise UnknownResult("the result is no longer retained", field="job_id", fix="read it earlier")
        return result.snapshot.value

    def result_of(self, result_id: UUID, seq: int | None = None) -> Operation[RemoteResult]:
        """Return the result of a permalink."""
        return self._get(RemoteResult, f"/v1/results/{result_id}", {} if seq is None else {"seq": seq})

    def partials(self, job_id: UUID) -> Operation[list[RemoteSnapshot]]:
        """Return the partial results so far."""
        result_id = (yield from self.status(job_id)).result_id
        if result_id is None:
            return []
        path, params = f"/v1/results/{result_id}/snapshots", {"after": 0, "limit": _PAGE_SIZE}
        snapshots: list[RemoteSnapshot] = []
        more = True
        while more:
            page, more = yield from self._page(path, "snapshots", RemoteSnapshot, params)
            snapshots += [snapshot for snapshot in page if snapshot.kind == "partial"]
        return snapshots

    def logs(self, job_id: UUID, attempt: int | None) -> Operation[None]:
        """Emit the log lines, page by page."""
        params: dict[str, Any] = {"limit": _PAGE_SIZE} | ({} if attempt is None else {"attempt": attempt})
        return self._each(f"/v1/jobs/{job_id}/logs", "lines", RemoteLogLine, params)

    def artifacts(self, job_id: UUID) -> Operation[list[RemoteArtifact]]:
        """Return the artifacts of a job."""
        page, _ = yield from self._page(f"/v1/jobs/{job_id}/artifacts", "artifacts", RemoteArtifact, {})
        return page

    def upload(self, source: Upload) -> Operation[str]:
        """Upload bytes, the content of a path or of an open file; return its reference."""
        content: bytes = source if isinstance(source, bytes) else (yield RunBlocking(_reader(source)))
        headers = {"content-type": "application/octet-stream"}
        request = RequestSpec("POST", "/v1/blobs", headers=headers, content=content)
        return parse(StoredBlob, (yield from send(request, self.policy))).blob

    def download(self, job_id: UUID, name: str) -> Operation[bytes]:
        """Return the content of an artifact."""
        sink = io.BytesIO()
        yield from self._fetch(job_id, name, sink)
        return sink.getvalue()

    def save(self, job_id: UUID, name: str, to: str | os.PathLike[str]) -> Operation[Path]:
        """Write an artifact to a path: the whole file, or nothing."""
        path = Path(to)
        part = path.with_name(f".{path.name}.{uuid4().hex}")
        try:
            with part.open("w+b") as sink:
                yield from self._fetch(job_id, name, sink)
            yield RunBlocking(lambda: part.replace(path))
        finally:
            part.unlink(missing_ok=True)
        return path

    def request(
        self, method: str, path: str, body: Any, params: Mapping[str, Any] | None, key: str | None
    ) -> Operation[Any]:
        """Send any other request. The API key goes to the service only: the path cannot name a host."""
        if not path.startswith("/") or path.startswith("//"):
            raise ContractError("not a path of the service", field="path", fix="write it as /v1/...")
        headers = {"idempotency-key": header_value("idempotency_key", key)} if key else {}
        content = None if body is None else encode_json(body)
        request = RequestSpec(
            method.upper(),
            path,
            {name: value for name, value in (params or {}).items() if value is not None},
            headers if content is None else {**headers, **_JSON},
            content,
            idempotent=key is not None or method.upper() in _IDEMPOTENT_METHODS,
        )
        response = yield from send(request, self.policy)
        try:
            return json.loads(response.content) if response.content else None
        except ValueError:
            raise invalid_response(response, "JSON") from None

    def _get(self, kind: type[M], path: str, params: Mapping[str, Any]) -> Operation[M]:
        return parse(kind, (yield from send(RequestSpec("GET", path, params), self.policy)))

    def _post(
        self, kind: type[M], path: str, body: Any, headers: Mapping[str, str] | None = None
    ) -> Operation[M]:
        request = RequestSpec("POST", path, headers={**_JSON, **(headers or {})}, content=encode_json(body))
        return parse(kind, (yield from send(request, self.policy)))

    def _page(
        self, path: str, items: str, item: type[M], params: dict[str, Any]
    ) -> Operation[tuple[list[M], bool]]:
        """Return the items of a page and whether another follows; set `params` to that one.

        A cursor that does not advance is the end for now. A page may be empty although more follow.
        """
        page = yield from self._get(page_of(items, item), path, params)
        more = page.after is not None and page.after != params.get("after")
        params["after"] = page.after
        return getattr(page, items), more

    def _each(self, path: str, items: str, item: type[M], params: dict[str, Any]) -> Operation[None]:
        """Emit the items of all pages."""
        more = True
        while more:
            page, more = yield from self._page(path, items, item, params)
            for found in page:
                yield Emit(found)

    def _fetch(self, job_id: UUID, name: str, sink: BinaryIO) -> Operation[None]:
        # A segment of dots would be resolved as a parent folder.
        path = _DOT_SEGMENT.sub(lambda dots: "%2E" * len(dots[0]), quote(name))
        request = RequestSpec("GET", f"/v1/jobs/{job_id}/artifacts/{path}", headers={"accept": "*/*"})
        response = yield from send(request, self.policy, sink)
        sha256 = _SHA256.search(response.headers.get("etag", ""))
        if sha256 and (yield RunBlocking(lambda: _sha256(sink))) != sha256[1]:
            raise invalid_response(response, "a file with the hash of its ETag")


def _reader(source: str | os.PathLike[str] | BinaryIO) -> Callable[[], bytes]:
    return Path(source).read_bytes if isinstance(source, str | os.PathLike) else source.read


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
