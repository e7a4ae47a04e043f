"""The main loop of the reader process: a request per line of JSON on stdin, a response per line on stdout."""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from duly.apps.documents.engines.reader.models import (
    PageSource,
    ReadError,
    ReadPage,
    ReadTask,
    nested_too_deeply,
)

_ADDRESS_SPACE_OVERHEAD = 768 * 1024 * 1024
"""Bytes of address space beside the memory in use: programs, shared libraries, thread stacks."""
_MAX_OPEN_FILES = 64
_MAX_FILE_SIZE = 1024 * 1024 * 1024
_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Open the file that the first line names; then answer each further line with pages."""
    out = _take_stdout()
    first = json.loads(sys.stdin.readline())
    task = ReadTask(first["path"], first["name"], first["engine"], first["limits"])
    _apply_limits(task)
    try:
        media_type, source = _open(task)
        _send(out, {"media_type": media_type, "pages": source.pages})
        for line in sys.stdin:
            _answer(out, source, json.loads(line))
    except ImportError as error:
        _send(out, {"missing": error.name or str(error)})
    except Exception as error:
        _send(out, _describe(error))


def _open(task: ReadTask) -> tuple[str, PageSource]:
    from duly.apps.documents.engines.reader.open_source import open_source

    media_type, source = open_source(task)
    if not source.pages:
        raise ReadError("document.empty", "the file has no pages")
    if source.pages > task.limit("pages_max"):
        raise ReadError("document.too_large", f"the file has {source.pages:,} pages")
    return media_type, source


def _answer(out: BinaryIO, source: PageSource, request: dict[str, Any]) -> None:
    if "part" in request:
        part = source.part(request["part"])  # type: ignore[attr-defined] # only requested for PDF
        Path("part.pdf").write_bytes(part)
        return _send(out, {"part": "part.pdf"})
    for page in source.read(request["read"], request["fallback"]):
        _send(out, _page_json(page))
    return None


def _page_json(page: ReadPage) -> dict[str, Any]:
    elements = [{**asdict(e), "text": e.text.replace("\0", "")} for e in page.elements]
    return {"number": page.number, "state": page.state, "elements": elements, "warnings": page.warnings}


def _describe(error: Exception) -> dict[str, str]:
    if isinstance(error, MemoryError):
        error = ReadError("document.too_large", "reading the file needs too much memory")
    elif isinstance(error, RecursionError):
        error = nested_too_deeply()
    elif not isinstance(error, ReadError):
        error = ReadError("document.broken", f"the file is damaged ({type(error).__name__})")
    return {"error": error.code, "message": error.message}


def _send(out: BinaryIO, response: dict[str, Any]) -> None:
    # Broken fonts yield lone surrogates, which UTF-8 cannot encode.
    out.write(json.dumps(response, ensure_ascii=False).encode(errors="replace") + b"\n")
    out.flush()


def _take_stdout() -> BinaryIO:
    """Return stdout, and redirect what libraries print to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def _apply_limits(task: ReadTask) -> None:
    """Let the kernel enforce the limits, and kill the process when the worker dies."""
    seconds = int(task.limits["seconds_open"] + task.limits["seconds_page"] * task.limit("pages_max"))
    for name, limit in (
        (resource.RLIMIT_AS, task.limit("memory") + _ADDRESS_SPACE_OVERHEAD),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _MAX_FILE_SIZE),
        (resource.RLIMIT_NOFILE, _MAX_OPEN_FILES),
    ):
        resource.setrlimit(name, (limit, limit))
    with suppress(OSError):  # the first candidate of the OOM killer
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
