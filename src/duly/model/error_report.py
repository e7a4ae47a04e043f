"""An exception as it is kept: what went wrong and where, without secrets and without the machine's paths."""

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

from duly.model.outcome import ErrorInfo
from duly.model.redact import LONGEST, printable, redact

MAX_BYTES = 32 * 1024
MAX_EXCEPTIONS = 10
MAX_FRAMES = 50

_LONGEST_NAME = 200
_CODE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ROOMS = {"blobs", "client", "control", "model", "store", "testing", "upkeep", "wiring", "worker"}


def describe(error: BaseException, *, job_type: str) -> ErrorInfo:
    """What is stored of the exception that ended an attempt."""
    return ErrorInfo(
        code=_code(error),
        message=_message(error),
        error_class=_class(error),
        context=_context(error, job_type),
    )


def fingerprint(job_type: str, info: ErrorInfo) -> str:
    """What makes failures the same kind: not their message, which carries ids, nor a line, which moves."""
    where = info.context.get("where") or {}
    parts = (job_type, info.code, info.error_class, where.get("file", ""), where.get("function", ""))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


class _Limits(NamedTuple):
    """How much is kept of each exception."""

    text: int
    notes: int
    frames: int
    name: int = _LONGEST_NAME


# Tried in this order until the whole fits; the last always does.
_LIMITS = (
    _Limits(LONGEST, 10, MAX_FRAMES),
    _Limits(500, 3, 20),
    _Limits(200, 1, 8),
    _Limits(100, 0, 2, name=100),
)


def _context(error: BaseException, job_type: str) -> dict[str, Any]:
    found = list(islice(_walk(error), MAX_EXCEPTIONS + 1))
    where = _where(_frames(error))
    context: dict[str, Any] = {"job_type": job_type, "where": where and where.shown(_LONGEST_NAME)}
    for limits in _LIMITS:
        context["exceptions"] = [link.shown(limits) for link in found[:MAX_EXCEPTIONS]]
        context["shortened"] = len(found) > MAX_EXCEPTIONS or limits is not _LIMITS[0]
        if len(json.dumps(context, ensure_ascii=False).encode()) <= MAX_BYTES:
            break
    return context


class _Link(NamedTuple):
    """One exception of those that led to the error, and how it is related to another of them."""

    error: BaseException
    relation: str = ""
    of: int = 0

    def shown(self, limits: _Limits) -> dict[str, Any]:
        frames = _frames(self.error)
        # Where it began and where it ended; in between a recursion repeats itself.
        first = limits.frames // 5
        last = frames[max(first, len(frames) - limits.frames + first) :]
        kept = [frame.shown(limits.name) for frame in (*frames[:first], *last)]
        shown: dict[str, Any] = {
            "class": _class(self.error)[: limits.name],
            "message": _message(self.error)[: limits.text],
            "frames": kept,
        }
        if len(kept) < len(frames):
            shown["frames_left_out"] = len(frames) - len(kept)
        if notes := _notes(self.error, limits):
            shown["notes"] = notes
        if self.relation:
            shown |= {"relation": self.relation, "of": self.of}
        return shown


def _walk(error: BaseException) -> Iterator[_Link]:
    """The error, then what caused it and what it groups, breadth first; each once."""
    waiting, seen = deque([_Link(error)]), {id(error)}
    number = 0
    while waiting:
        link = waiting.popleft()
        yield link
        for relation, other in _related(link.error):
            if id(other) not in seen:
                seen.add(id(other))
                waiting.append(_Link(other, relation, number))
        number += 1


def _related(error: BaseException) -> Iterator[tuple[str, BaseException]]:
    if error.__cause__ is not None:
        yield "cause", error.__cause__
    elif error.__context__ is not None and not error.__suppress_context__:
        yield "context", error.__context__
    if isinstance(error, BaseExceptionGroup):
        yield from (("member", member) for member in error.exceptions)


class _Frame(NamedTuple):
    """One step of a stack: never its locals, never a path of the machine."""

    module: str
    path: str
    function: str
    line: int

    def shown(self, longest: int) -> dict[str, Any]:
        return {"file": self.file[-longest:], "line": self.line, "function": self.function[:longest]}

    @property
    def file(self) -> str:
        """The file within its package."""
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
    def ours(self) -> bool:
        """Whether it is the language's or the engine's, and not the application's."""
        room = self.module.split(".")[1:2]
        engine = self.package == "duly" and (not room or room[0] in _ROOMS)
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


def _where(frames: list[_Frame]) -> _Frame | None:
    """The innermost frame of the application."""
    # It may be installed like any library; then it is the one that was called first.
    theirs = [frame for frame in frames if not frame.ours]
    own = [f for f in theirs if not f.installed] or [f for f in theirs if f.package == theirs[0].package]
    return own[-1] if own else None


def _code(error: BaseException) -> str:
    """The error's own stable code if it has one (`card.expired`), else its class in small letters."""
    with suppress(Exception):  # a property of somebody's class
        code = getattr(error, "code", None)
        if isinstance(code, str) and _CODE.fullmatch(code):
            return code[:_LONGEST_NAME]
    return _WORDS.sub("_", printable(type(error).__name__)).lower()[:_LONGEST_NAME]


def _class(error: BaseException) -> str:
    cls = type(error)
    module = "" if cls.__module__ == "builtins" else f"{cls.__module__}."
    return printable(f"{module}{cls.__qualname__}")[:_LONGEST_NAME]


def _message(error: BaseException) -> str:
    try:
        return redact(str(error))
    except BaseException as unsayable:  # an exception's own __str__ may fail, in any way
        return f"its message cannot be read: {type(unsayable).__name__}"


def _notes(error: BaseException, limits: _Limits) -> list[str]:
    notes = getattr(error, "__notes__", None)
    texts = [note for note in notes if isinstance(note, str)] if isinstance(notes, list | tuple) else []
    return [redact(note)[: limits.text] for note in texts[: limits.notes]]
