"""Log lines on stderr, as JSON or for people: one formatter for ours, those of handlers and of libraries.

Everything goes through the standard library's logging; who uses structlog is led there too. A line is its
message, redacted, the fields of the allow-list, and of an exception what happened and where, without any
values.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.stdlib import ProcessorFormatter

from duly.model.error_report import describe
from duly.model.redact import cut
from duly.observe.fields import kept, safe
from duly.observe.logs import Logs

_CHATTY = ("httpcore", "httpx")
"""They tell addresses and headers of every request."""
_RELATION = {"cause": "caused by ", "context": "while handling ", "member": "one of them "}


def write(logs: Logs) -> None:
    """Have everything that is logged in this process written to stderr from now on."""
    handler = _Stderr(sys.stderr)
    handler.setFormatter(formatter(as_json=logs.as_json, colors=sys.stderr.isatty()))
    for each in logs.filters:
        handler.addFilter(each)
    logging.basicConfig(level=logs.level.upper(), handlers=[handler], force=True)
    for name in _CHATTY:
        logging.getLogger(name).setLevel(logging.WARNING)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.PositionalArgumentsFormatter(),
            ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
    )


def formatter(*, as_json: bool, colors: bool = False) -> logging.Formatter:
    """The formatter by itself, for a handler of one's own."""
    if as_json:
        render: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
        return ProcessorFormatter(processors=[_safe, render])
    render = structlog.dev.ConsoleRenderer(colors=colors, event_key="message", timestamp_key="time")
    return ProcessorFormatter(processors=[_safe, _for_people, render])


def _safe(_: Any, __: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """The line as it may be written."""
    record: logging.LogRecord = event["_record"]
    line = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": safe(str(event["event"])),
        "pid": record.process,
        **kept(record.__dict__),
    }
    if event["_from_structlog"]:
        line |= kept(event)
    error = _error(event.get("exc_info"))
    if error is not None:
        line["exception"] = told(error)
    return line


def _for_people(_: Any, __: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Nobody's text looks like a line of its own, nor overwrites one."""
    del line["pid"]
    return {name: _flat(name, value) if isinstance(value, str) else value for name, value in line.items()}


def _flat(name: str, text: str) -> str:
    text = text.replace("\r", "\\r")
    return text if name == "exception" else text.replace("\n", "\\n")


def told(error: BaseException) -> str:
    """What happened and where, the first cause last; neither locals nor lines of code."""
    lines: list[str] = []
    for one in describe(error, job_type="").context["exceptions"]:
        message = cut(one["message"]).replace("\n", "\n  ")
        lines.append(f"{_RELATION.get(one.get('relation', ''), '')}{one['class']}: {message}")
        lines += [f"  {frame['file']}:{frame['line']} in {frame['function']}" for frame in one["frames"]]
    return "\n".join(lines)


def _error(given: Any) -> BaseException | None:
    """The exception of whatever was given as `exc_info`."""
    if isinstance(given, BaseException):
        return given
    found = given if isinstance(given, tuple) else sys.exc_info() if given else (None, None, None)
    return found[1] if isinstance(found[1], BaseException) else None


class _Stderr(logging.StreamHandler[Any]):
    """The standard library shows a line that cannot be formatted with all of its arguments; we do not."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        with suppress(Exception):
            kind = type(sys.exc_info()[1]).__name__
            where = f"{record.name}, {record.filename}:{record.lineno}"
            self.stream.write(f"a line cannot be written ({where}): {kind}\n")
