"""The process that reads one file: lines of JSON come in, lines of JSON go out."""

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

from duly.apps.documents.engines.reader.models import Read, Source, Task, Trouble

_ROOM = 768 * 1024 * 1024
"""Addresses beside the memory that is used: programs, their libraries, the stacks of their threads."""
_FILES = 64
_WRITTEN = 1024 * 1024 * 1024
_PDEATHSIG = 1


def main() -> None:
    """Read what the first line names; then give the pages that the next ones ask for."""
    out = _own_output()
    first = json.loads(sys.stdin.readline())
    task = Task(first["path"], first["name"], first["engine"], first["limits"])
    _bind(task)
    source = None
    for question in _questions():
        try:
            if source is None:
                media_type, source = _opened(task)
                _say(out, {"media_type": media_type, "pages": source.pages})
            if question is not None:
                _answer(out, source, question)
        except ImportError as missing:
            _say(out, {"missing": missing.name or str(missing)})
            return
        except Exception as trouble:
            _say(out, _said(trouble))
            return


def _questions() -> Any:
    yield None
    yield from (json.loads(line) for line in sys.stdin)


def _opened(task: Task) -> tuple[str, Source]:
    from duly.apps.documents.engines.reader.open_source import opened

    media_type, source = opened(task)
    if not source.pages:
        raise Trouble("document.empty", "it has no pages")
    if source.pages > task.limit("pages_max"):
        raise Trouble("document.too_large", f"it has {source.pages:,} pages")
    return media_type, source


def _answer(out: BinaryIO, source: Source, question: dict[str, Any]) -> None:
    if "part" in question:
        part = source.part(question["part"])  # type: ignore[attr-defined] # only asked of PDF
        Path("part.pdf").write_bytes(part)
        return _say(out, {"part": "part.pdf"})
    for page in source.read(question["read"], question["plain"]):
        _say(out, _plain(page))
    return None


def _plain(page: Read) -> dict[str, Any]:
    elements = [{**asdict(e), "text": e.text.replace("\0", "")} for e in page.elements]
    return {"number": page.number, "state": page.state, "elements": elements, "warnings": page.warnings}


def _said(trouble: Exception) -> dict[str, str]:
    if isinstance(trouble, Trouble):
        return {"error": trouble.code, "message": trouble.message}
    if isinstance(trouble, MemoryError):
        return {"error": "document.too_large", "message": "it needs more memory than a file may"}
    if isinstance(trouble, RecursionError):
        return {"error": "document.too_deep", "message": "its parts lie too deep within one another"}
    return {"error": "document.broken", "message": f"it is damaged ({type(trouble).__name__})"}


def _say(out: BinaryIO, said: dict[str, Any]) -> None:
    # Halves of surrogates are no text; they come from broken fonts.
    out.write(json.dumps(said, ensure_ascii=False).encode(errors="replace") + b"\n")
    out.flush()


def _own_output() -> BinaryIO:
    """What libraries print must not be taken for answers."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return out


def _bind(task: Task) -> None:
    """Bounds that the kernel keeps, whatever the file makes a library do; and an end when the worker ends."""
    seconds = int(task.limits["seconds_open"] + task.limits["seconds_page"] * task.limit("pages_max"))
    for what, most in (
        (resource.RLIMIT_AS, task.limit("memory") + _ROOM),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_FSIZE, _WRITTEN),
        (resource.RLIMIT_NOFILE, _FILES),
    ):
        resource.setrlimit(what, (most, most))
    with suppress(OSError):  # if memory runs out, this process goes first
        Path("/proc/self/oom_score_adj").write_text("1000")
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)
