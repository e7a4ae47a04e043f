"""Parameters and types that many routes share, and the base of request bodies."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Query
from pydantic import AfterValidator, AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

MAX_REASON_LENGTH = 500
MAX_INT32 = 2**31 - 1
_RFC3339_START = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:")
_REASON = "The reason; recorded in the audit trail."

Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON_LENGTH, description=_REASON)]
ReasonParam = Annotated[
    str,
    Query(
        alias="reason",
        min_length=1,
        max_length=MAX_REASON_LENGTH,
        description=f"{_REASON} A query parameter, because proxies drop the body of a DELETE.",
    ),
]
Text = Annotated[str, Field(min_length=1, max_length=500)]
After = Annotated[str | None, Query(max_length=4000, description="`after` from the previous page.")]
PageSize = Annotated[int, Query(ge=1, le=500)]


class StrictModel(BaseModel):
    """The base of request bodies: an unknown field is an error."""

    model_config = ConfigDict(extra="forbid")


class ReasonBody(StrictModel):
    """A change that takes a reason."""

    reason: Reason


def _rfc3339(value: object) -> object:
    """Reject numbers, which pydantic reads as seconds or milliseconds."""
    if isinstance(value, datetime) or (isinstance(value, str) and _RFC3339_START.match(value)):
        return value
    raise ValueError("not a date with a time and a zone, such as 2026-01-31T08:00:00Z")


def _to_utc(at: datetime) -> datetime:
    """Convert to UTC: PostgreSQL does not know every zone, and Python no year outside of 1 to 9999."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return (datetime.min if at.year == 1 else datetime.max).replace(tzinfo=UTC)


def _json_number(value: object) -> object:
    """Reject texts and booleans, which pydantic reads as numbers."""
    if isinstance(value, bool | str):
        raise ValueError("not a number")
    return value


Timestamp = Annotated[AwareDatetime, BeforeValidator(_rfc3339), AfterValidator(_to_utc)]
"""A time as RFC 3339 writes it."""
NUMERIC = BeforeValidator(_json_number)
"""For integers in bodies. Put it behind their bounds, or the OpenAPI document loses these."""
