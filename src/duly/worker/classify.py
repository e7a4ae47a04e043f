"""What an exception means for the attempt that raised it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

from pydantic import ValidationError

from duly.client.job import Job
from duly.model import verdict
from duly.model.error_report import describe
from duly.model.errors import ConfigurationError, ContractError, LeaseLost, NotFound
from duly.model.outcome import Canceled, Ending, ErrorInfo, Failed, Lost, Retry, Snooze
from duly.model.redact import printable, redact

log = logging.getLogger("duly.worker")
_LONGEST_CODE = 200
_NEVER: tuple[type[BaseException], ...] = (
    ConfigurationError,
    ContractError,
    NotFound,
    ValidationError,
    PermissionError,
)
"""Validation, ownership: trying again changes nothing."""


def ending_of_error(error: BaseException, kind: Job[..., Any]) -> Ending:
    """The ending behind what a handler raised. Unknown errors may pass; registered ones will not."""
    if isinstance(error, verdict.Verdict):
        return ending_of_verdict(error, kind)
    if isinstance(error, LeaseLost):
        return Lost(error.message)
    if isinstance(error, MemoryError):
        # Describing it would walk frames that still hold what filled the memory.
        short = ErrorInfo("handler.memory", "the handler ran out of memory", "MemoryError")
        return Retry(short, dependency=kind.handling.dependency)
    info = describe(error, job_type=kind.name)
    never = (*_NEVER, *kind.handling.never_retry, *kind.app.never_retry)
    if isinstance(error, never):
        return Failed(info)
    if isinstance(error, asyncio.CancelledError):
        info = ErrorInfo("handler.cancelled", "the handler cancelled itself", "CancelledError")
    return Retry(info, after=retry_after(error), dependency=kind.handling.dependency)


def ending_of_verdict(said: verdict.Verdict, kind: Job[..., Any]) -> Ending:
    """The ending that a handler asked for."""
    match said:
        case verdict.Snooze():
            return Snooze(said.delay, redact(said.reason))
        case verdict.Cancel():
            return Canceled("worker", redact(said.reason) or "canceled by the handler")
        case verdict.Fail():
            return Failed(_said(said.code, said), said.blocked)
        case verdict.Retry():
            dependency = said.dependency or kind.handling.dependency
            return Retry(_said(said.code, said), said.after, dependency)
        case _:
            return Failed(_said("handler.verdict", said))


def _said(code: str, said: verdict.Verdict) -> ErrorInfo:
    cause = said.__cause__ or said.__context__
    context = describe(said, job_type="").context if cause is not None or said.__traceback__ else {}
    kept = printable(str(code))[:_LONGEST_CODE] or "handler.verdict"
    return ErrorInfo(kept, redact(str(said)) or "no reason was given", type(said).__name__, context)


def retry_after(error: BaseException) -> timedelta | None:
    """What a provider's answer says about when to come back: `Retry-After`, as HTTP clients keep it."""
    for part in _chain(error):
        try:
            headers = getattr(getattr(part, "response", None), "headers", None) or getattr(
                part, "headers", None
            )
            said = headers.get("retry-after") or headers.get("Retry-After") if headers is not None else None
            if said is not None:
                return _wait(str(said))
        except Exception:  # somebody's class: a property may raise what it likes
            log.debug("no Retry-After can be read from %s", type(part).__name__)
    return None


def _chain(error: BaseException) -> Iterable[BaseException]:
    seen = 0
    part: BaseException | None = error
    while part is not None and seen < 10:
        yield part
        part, seen = part.__cause__ or part.__context__, seen + 1


def _wait(said: str) -> timedelta:
    if said.strip().isdigit():
        return timedelta(seconds=int(said))
    until = parsedate_to_datetime(said)
    # Against the provider's own date it would be better, but few clients keep that.
    return max(until - datetime.now(UTC), timedelta(0))
