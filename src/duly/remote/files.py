"""Files: up, to be named in payloads, and down, verified."""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote
from uuid import UUID, uuid4

from duly.remote.answers import Blob
from duly.remote.asking import Patience, answered, read
from duly.remote.problems import bad_answer
from duly.remote.steps import Asked, Flow, Work

Upload = bytes | str | os.PathLike[str] | BinaryIO
_DOTS = re.compile(r"(?<![^/])\.{1,2}(?![^/])")
_SHA256 = re.compile(r'"([0-9a-f]{64})"')


def upload(source: Upload, patience: Patience) -> Flow[str]:
    """Send the bytes, or those of a path or of an open file; the same twice are one blob."""
    content: bytes = source if isinstance(source, bytes) else (yield Work(_reader(source)))
    asked = Asked("POST", "/v1/blobs", headers={"content-type": "application/octet-stream"}, content=content)
    return read(Blob, (yield from answered(asked, patience))).blob


def download(job_id: UUID, name: str, patience: Patience) -> Flow[bytes]:
    """The content of a file of a job."""
    sink = io.BytesIO()
    yield from _fetch(job_id, name, sink, patience)
    return sink.getvalue()


def save(job_id: UUID, name: str, to: str | os.PathLike[str], patience: Patience) -> Flow[Path]:
    """The same, written to a path: the whole file is there, or none."""
    path = Path(to)
    part = path.with_name(f".{path.name}.{uuid4().hex}")
    try:
        with part.open("w+b") as sink:
            yield from _fetch(job_id, name, sink, patience)
        yield Work(lambda: part.replace(path))
    finally:
        part.unlink(missing_ok=True)
    return path


def _fetch(job_id: UUID, name: str, sink: BinaryIO, patience: Patience) -> Flow[None]:
    # A segment of dots would be taken for a way up.
    place = _DOTS.sub(lambda dots: "%2E" * len(dots[0]), quote(name))
    asked = Asked("GET", f"/v1/jobs/{job_id}/artifacts/{place}", headers={"accept": "*/*"})
    answer = yield from answered(asked, patience, sink)
    said = _SHA256.search(answer.headers.get("etag", ""))
    if said and (yield Work(lambda: _sha256(sink))) != said[1]:
        raise bad_answer(answer, "file of this hash")


def _reader(source: str | os.PathLike[str] | BinaryIO) -> Callable[[], bytes]:
    return Path(source).read_bytes if isinstance(source, str | os.PathLike) else source.read


def _sha256(file: BinaryIO) -> str:
    file.seek(0)
    return hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]
