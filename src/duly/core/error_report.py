"""Describe an exception for storage: its causes and frames, without secrets and paths of the machine."""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from traceback import walk_tb
from types import FrameType
from typing import Any, NamedTuple

from duly.core.outcome import ErrorInfo
from duly.core.redaction import MAX_TEXT_LENGTH, printable, redact

MAX_ERROR_BYTES = 32 * 1024
MAX_EXCEPTIONS = 10
MAX_FRAMES = 50

_MAX_NAME_LENGTH = 200
_CODE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_WORD_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_JOB_PACKAGES = (
    "duly.apps.",
    "duly.features.bulk.",
    "duly.features.notifications.",
    "duly.features.webhooks.",
)
"""Packages of Duly with job types of their own: a failure there is located like one in an application."""


def describe_error(error: BaseException, *, job_type: str) -> ErrorInfo:
    """Return the stored form of the exception that ended an attempt."""
    return ErrorInfo(
        code=_code(error),
        message=_message(error),
        error_class=_class(error),
        context=_context(error, job_type),
    )


def fingerprint(job_type: str, info: ErrorInfo) -> str:
    """Return a hash that equal failures share: without messages, which contain ids, and lines, which move."""
    where = info.context.get("where") or {}
    parts = (job_type, info.code, info.error_class, where.get("file", ""), where.get("function", ""))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class _Limits(NamedTuple):
    """How much of each exception is stored."""

    text: int
    notes: int
    frames: int
    name: int = _MAX_NAME_LENGTH


# Tried in this order until the whole report fits; the last always does.
_LIMITS = (
    _Limits(MAX_TEXT_LENGTH, 10, MAX_FRAMES),
    _Limits(500, 3, 20),
    _Limits(200, 1, 8),
    _Limits(100, 0, 2, name=100),
)


def _context(error: BaseException, job_type: str) -> dict[str, Any]:
    found = list(islice(_walk(error), MAX_EXCEPTIONS + 1))
    where = _innermost_application_frame(_frames(error))
    context: dict[str, Any] = {"job_type": job_type, "where": where and where.as_json(_MAX_NAME_LENGTH)}
    for limits in _LIMITS:
        context["exceptions"] = [link.as_json(limits) for link in found[:MAX_EXCEPTIONS]]
        context["shortened"] = len(found) > MAX_EXCEPTIONS or limits is not _LIMITS[0]
        if len(json.dumps(context, ensure_ascii=False).encode()) <= MAX_ERROR_BYTES:
            break
    return context


class _Link(NamedTuple):
    """One exception of a chain or a group, and its relation to another of them."""

    error: BaseException
    relation: str = ""
    of: int = 0

    def as_json(self, limits: _Limits) -> dict[str, Any]:
        frames = _frames(self.error)
        # The outermost and the innermost frames; in between a recursion repeats itself.
        first = limits.frames // 5
        last = frames[max(first, len(frames) - limits.frames + first) :]
        included = [frame.as_json(limits.name) for frame in (*frames[:first], *last)]
        report: dict[str, Any] = {
            "class": _class(self.error)[: limits.name],
            "message": _message(self.error)[: limits.text],
            "frames": included,
        }
        if len(included) < len(frames):
            report["frames_left_out"] = len(frames) - len(included)
        if notes := _notes(self.error, limits):
            report["notes"] = notes
        if self.relation:
            report |= {"relation": self.relation, "of": self.of}
        return report


def _walk(error: BaseException) -> Iterator[_Link]:
    """Yield the error, then its causes and group members, breadth first; each once."""
    pending, visited = deque([_Link(error)]), {id(error)}
    number = 0
    while pending:
        link = pending.popleft()
        yield link
        for relation, other in _related(link.error):
            if id(other) not in visited:
                visited.add(id(other))
                pending.append(_Link(other, relation, number))
        number += 1


def _related(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    if error.__cause__ is not None:
        yield "cause", error.__cause__
    elif error.__context__ is not None and not error.__suppress_context__:
        yield "context", error.__context__
    if isinstance(error, BaseExceptionGroup):
        yield from (("member", member) for member in error.exceptions)


class _Frame(NamedTuple):
    """One frame of a stack, without its locals and without a path of the machine."""

    module: str
    path: str
    function: str
    line: int

    def as_json(self, max_length: int) -> dict[str, Any]:
        return {"file": self.file[-max_length:], "line": self.line, "function": self.function[:max_length]}

    @property
    def file(self) -> str:
        """The path of the file within its package."""
        name = self.path.rpartition("/")[2]
        parts = self.module.split(".")
        if name == "__init__.py":
            return "/".join([*parts, name])
        return "/".join([*parts[:-1], name]) if parts[-1] == name.removesuffix(".py") else name

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def installed(self) -> bool:
        return "/site-packages/" in self.path or "/dist-packages/" in self.path

    @property
    def internal(self) -> bool:
        """Whether the frame belongs to Python or to the engine, and not to the application."""
        engine = self.package == "duly" and not self.module.startswith(_JOB_PACKAGES)
        return engine or (self.package in sys.stdlib_module_names and not self.installed)


def _frames(error: BaseException) -> list[_Frame]:
    return [_frame(frame, line) for frame, line in walk_tb(error.__traceback__)]


def _frame(frame: FrameType, line: int | None) -> _Frame:
    code = frame.f_code
    module = frame.f_globals.get("__name__")
    return _Frame(
        module=printable(module) if isinstance(module, str) else "",
        path=printable(code.co_filename).replace("\\", "/"),
        function=printable(code.co_qualname),
        line=line or 0,
    )


def _innermost_application_frame(frames: list[_Frame]) -> _Frame | None:
    # The application may be installed like any library; then it is the package that was called first.
    external = [frame for frame in frames if not frame.internal]
    own = [f for f in external if not f.installed] or [
        f for f in external if f.package == external[0].package
    ]
    return own[-1] if own else None


def _code(error: BaseException) -> str:
    """Return the error's own stable code if it has one (`card.expired`), else its class in snake case."""
    with suppress(Exception):  # `code` may be a property of a foreign class, and raise
        code = getattr(error, "code", None)
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code[:_MAX_NAME_LENGTH]
    return _WORD_BOUNDARY.sub("_", printable(type(error).__name__)).lower()[:_MAX_NAME_LENGTH]


def _class(error: BaseException) -> str:
    cls = type(error)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return printable(f"{module}{cls.__qualname__}")[:_MAX_NAME_LENGTH]


def _message(error: BaseException) -> str:
    try:
        return redact(str(error))
    except BaseException as failure:  # an exception's own __str__ may fail, in any way
        return f"its message cannot be read: {type(failure).__name__}"


def _notes(error: BaseException, limits: _Limits) -> list[str]:
    notes = getattr(error, "__notes__", None)
    texts = [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []
    return [redact(note)[: limits.text] for note in texts[: limits.notes]]
