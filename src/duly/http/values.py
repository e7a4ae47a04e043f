"""Values as callers spell them, where pydantic takes more than the document says."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BeforeValidator

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:")


def _spelled(given: object) -> object:
    """Refuse numbers, which pydantic takes for seconds or milliseconds."""
    if isinstance(given, datetime) or (isinstance(given, str) and _MOMENT.match(given)):
        return given
    raise ValueError("not a date with a time and a zone, as in 2026-01-31T08:00:00Z")


def _in_utc(at: datetime) -> datetime:
    """As it can be stored: PostgreSQL knows not every zone, and Python nothing before or after its years."""
    try:
        return at.astimezone(UTC)
    except OverflowError:
        return (datetime.min if at.year == 1 else datetime.max).replace(tzinfo=UTC)


def _numeric(given: object) -> object:
    """Refuse what pydantic takes for a number although it is none in JSON."""
    if isinstance(given, bool | str):
        raise ValueError("not a number")
    return given


Moment = Annotated[AwareDatetime, BeforeValidator(_spelled), AfterValidator(_in_utc)]
"""A time: RFC 3339."""
NUMERIC = BeforeValidator(_numeric)
"""For an integer in a body; behind its limits, or the document does not have them."""
