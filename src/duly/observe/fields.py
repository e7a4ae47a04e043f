"""What a line may carry beside its message: an allow-list. Whatever else somebody gives it is not written."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from duly.model.counts import SUMMARY_KEYS
from duly.model.redact import printable, redact

IDS = ("request_id", "correlation_id", "job_id", "job_type", "org_id", "project_id", "attempt")
"""Whose line it is: of which request, of which job, for which org."""
_WORDS = (
    *("queue", "worker_id", "status", "outcome", "method", "route", "error_code", "error_class"),
    *("chore", "schedule_id", "endpoint_id", "notification_id", "channel", "trace_id", "span_id", "where"),
)
# In every record of the standard library `created` is its time.
_NUMBERS = ("duration_ms", *sorted(SUMMARY_KEYS - {"created"}))
_LONGEST_ID, _LONGEST_WORD, _SHORT = 500, 200, 200

Scalar = str | int | float | bool


def kept(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """Those of the values that may be written, as JSON knows them."""
    ids = {name: _id(values[name]) for name in IDS if values.get(name) is not None}
    words = {name: _word(values[name]) for name in _WORDS if name in values}
    numbers = {name: _number(values[name]) for name in _NUMBERS if name in values}
    return {name: value for name, value in {**ids, **words, **numbers}.items() if value is not None}


def ids_of(job: object) -> dict[str, Any]:
    """The ids of a job, as far as it has them: for `extra=` of lines about it that are logged elsewhere."""
    found = {name: getattr(job, name) for name in IDS if hasattr(job, name)}
    return {name: str(value) if isinstance(value, UUID) else value for name, value in found.items()}


def safe(text: str) -> str:
    """A text that may be written."""
    # Routes, queues and most messages are said again and again.
    return _remembered(text) if len(text) <= _SHORT else redact(text)


_remembered = lru_cache(maxsize=1024)(redact)


def _id(value: Any) -> Scalar | None:
    if isinstance(value, UUID | str):
        # Not redacted: it was looked at when it came in, and half an id finds nothing.
        return printable(str(value)[:_LONGEST_ID])
    return _number(value)


def _word(value: Any) -> Scalar | None:
    if isinstance(value, UUID | str):
        return safe(str(value))[:_LONGEST_WORD]
    return _number(value)


def _number(value: Any) -> int | float | bool | None:
    """A number that JSON knows, and that a database can store."""
    if not isinstance(value, int | float) or abs(value) >= 2**63 or math.isnan(value):
        return None
    return value
