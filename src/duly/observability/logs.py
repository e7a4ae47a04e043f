"""Logging: one formatter for Duly's lines, those of handlers and of libraries, as JSON or as text on stderr.

Everything goes through the standard library's logging; structlog is routed there, too. A line is its redacted
message, the fields of the allow-list, and of an exception what happened and where, without any values.
structlog is imported only when logging is configured: its import takes a moment.
"""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from duly.core.error_report import describe_error
from duly.core.job import SUMMARY_KEYS
from duly.core.redaction import printable, redact, truncate

IDS = ("request_id", "correlation_id", "job_id", "job_type", "org_id", "project_id", "attempt")
"""The ids of a line: its request, its job, its org."""
_TEXTS = (
    *("queue", "worker_id", "status", "outcome", "method", "route", "error_code", "error_class"),
    *("chore", "schedule_id", "endpoint_id", "notification_id", "channel", "trace_id", "span_id", "where"),
)
# In every record of the standard library `created` is its time.
_NUMBERS = ("duration_ms", *sorted(SUMMARY_KEYS - {"created"}))
_MAX_ID_LENGTH, _MAX_TEXT_LENGTH, _MAX_CACHED_LENGTH = 500, 200, 200
_VERBOSE_LOGGERS = ("httpcore", "httpx")
"""They log the address and headers of every request."""
_RELATION = {"cause": "caused by ", "context": "while handling ", "member": "one of them "}

Scalar = str | int | float | bool


def safe_fields(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Return the fields on the allow-list as JSON scalars; all others are left out."""
    ids = {name: _id(values[name]) for name in IDS if values.get(name) is not None}
    texts = {name: _text(values[name]) for name in _TEXTS if name in values}
    numbers = {name: _number(values[name]) for name in _NUMBERS if name in values}
    return {name: value for name, value in {**ids, **texts, **numbers}.items() if value is not None}


def ids_of(job: object) -> dict[str, Any]:
    """Return the ids of a job, for `extra=` of lines about it that are logged outside of its context."""
    ids = {name: getattr(job, name) for name in IDS if hasattr(job, name)}
    return {name: str(value) if isinstance(value, UUID) else value for name, value in ids.items()}


def safe_text(text: str) -> str:
    """Return the redacted text."""
    # Routes, queues and most messages repeat.
    return _cached_redact(text) if len(text) <= _MAX_CACHED_LENGTH else redact(text)


_cached_redact = lru_cache(maxsize=1024)(redact)


def _id(value: Any) -> Scalar | None:
    if isinstance(value, UUID | str):
        # Not redacted: it was checked when it came in, and half an id finds nothing.
        return printable(str(value)[:_MAX_ID_LENGTH])
    return _number(value)


def _text(value: Any) -> Scalar | None:
    if isinstance(value, UUID | str):
        return safe_text(str(value))[:_MAX_TEXT_LENGTH]
    return _number(value)


def _number(value: Any) -> int | float | bool | None:
    """Return a number that JSON and the database can represent."""
    if not isinstance(value, int | float) or abs(value) >= 2**63 or math.isnan(value):
        return None
    return value


_in_use: Logs | None = None


@dataclass(frozen=True, slots=True)
class Logs:
    """The logging configuration of a process; its isolated processes get the same."""

    as_json: bool
    level: str
    filters: tuple[logging.Filter, ...] = ()
    """Applied to every record first; one of them adds the ids of the current request or job."""

    def configure(self) -> None:
        """Write everything that is logged in this process to stderr from now on."""
        global _in_use
        import structlog
        from structlog.stdlib import ProcessorFormatter

        handler = _Stderr(sys.stderr)
        handler.setFormatter(formatter(as_json=self.as_json, colors=sys.stderr.isatty()))
        for each in self.filters:
            handler.addFilter(each)
        logging.basicConfig(level=self.level.upper(), handlers=[handler], force=True)
        for name in _VERBOSE_LOGGERS:
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
        _in_use = self


def in_use() -> Logs | None:
    """Return the configuration of this process; None if the application configured logging itself."""
    return _in_use


def formatter(*, as_json: bool, colors: bool = False) -> logging.Formatter:
    """Return the formatter alone, for handlers of the application."""
    import structlog
    from structlog.stdlib import ProcessorFormatter

    if as_json:
        render: Any = structlog.processors.JSONRenderer(ensure_ascii=False)
        return ProcessorFormatter(processors=[_safe_line, render])
    render = structlog.dev.ConsoleRenderer(colors=colors, event_key="message", timestamp_key="time")
    return ProcessorFormatter(processors=[_safe_line, _single_line, render])


def _safe_line(_: Any, __: str, event: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Return the redacted line with its allowed fields."""
    record: logging.LogRecord = event["_record"]
    line = {
        "time": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
        "level": record.levelname.lower(),
        "logger": record.name,
        "message": safe_text(str(event["event"])),
        "pid": record.process,
        **safe_fields(record.__dict__),
    }
    if event["_from_structlog"]:
        line |= safe_fields(event)
    error = _error(event.get("exc_info"))
    if error is not None:
        line["exception"] = describe_exception(error)
    return line


def _single_line(_: Any, __: str, line: MutableMapping[str, Any]) -> Mapping[str, Any]:
    """Escape line breaks, so that no text looks like a line of its own or overwrites one."""
    del line["pid"]
    return {name: _escape(name, value) if isinstance(value, str) else value for name, value in line.items()}


def _escape(name: str, text: str) -> str:
    text = text.replace("\r", "\\r")
    return text if name == "exception" else text.replace("\n", "\\n")


def describe_exception(error: BaseException) -> str:
    """Return what happened and where, the first cause last; without locals or source lines."""
    lines: list[str] = []
    for one in describe_error(error, job_type="").context["exceptions"]:
        message = truncate(one["message"]).replace("\n", "\n  ")
        lines.append(f"{_RELATION.get(one.get('relation', ''), '')}{one['class']}: {message}")
        lines += [f"  {frame['file']}:{frame['line']} in {frame['function']}" for frame in one["frames"]]
    return "\n".join(lines)


def _error(exc_info: Any) -> BaseException | None:
    """Return the exception of an `exc_info` argument."""
    if isinstance(exc_info, BaseException):
        return exc_info
    if not isinstance(exc_info, tuple):
        exc_info = sys.exc_info() if exc_info else (None, None, None)
    return exc_info[1] if isinstance(exc_info[1], BaseException) else None


class _Stderr(logging.StreamHandler[Any]):
    """Reports a line that cannot be formatted without its arguments, unlike the standard handler."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        with suppress(Exception):
            kind = type(sys.exc_info()[1]).__name__
            where = f"{record.name}, {record.filename}:{record.lineno}"
            self.stream.write(f"log line could not be written ({where}): {kind}\n")
