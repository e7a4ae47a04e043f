"""What is asked of a list of jobs, checked; and the places where its pages begin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Any, TypeVar
from uuid import UUID

from duly.client.context import checked_text
from duly.control.paging import cursor, place
from duly.model.errors import ContractError
from duly.model.freshness import Freshness
from duly.model.states import OUTCOMES, Outcome, Status
from duly.store.choice import NEWEST, Choice, Place

E = TypeVar("E", bound=StrEnum)
Scalar = str | int | float | bool | None
_MOST_NAMES = 10


def choose(
    org_id: UUID,
    *,
    status: Status | str | None,
    outcome: Outcome | str | None,
    job_type: str | None,
    queue: str | None,
    subject_id: str | None,
    freshness: Freshness | str | None,
    created_after: datetime | None,
    created_before: datetime | None,
    metadata: Mapping[str, Scalar] | None,
) -> Choice:
    """The jobs for which all of this is so; without any status if there can be none."""
    ended = _one_of("outcome", Outcome, outcome)
    statuses = _statuses(_one_of("status", Status, status), ended)
    fresh = _one_of("freshness", Freshness, freshness)
    if fresh is not None:
        statuses = _active(statuses, fresh)
    return Choice(
        org_id,
        statuses,
        None if ended and all(OUTCOMES[one] == {ended} for one in statuses) else ended,
        checked_text("job_type", job_type),
        checked_text("queue", queue),
        checked_text("subject_id", subject_id),
        fresh,
        _moment("created_after", created_after),
        _moment("created_before", created_before),
        _names(metadata),
    )


def start_of(choice: Choice, after: str | None) -> Place:
    """Where a page begins. What lies behind a page of other jobs is not what follows here."""
    found = place(after, _read_place)
    if found is None:
        return NEWEST
    if found[0] != _mark(choice):
        raise ContractError(
            "this page is of another list", field="after", fix="keep the filters while paging"
        )
    return found[1]


def cursor_of(choice: Choice, end: Place | None) -> str | None:
    """What asks for the page that begins there."""
    if end is None:
        return None
    return cursor(_mark(choice), "" if end.at is None else end.at.isoformat(), end.job_id)


def _read_place(mark: str, at: str, job_id: str) -> tuple[str, Place]:
    return mark, Place(datetime.fromisoformat(at).astimezone(UTC) if at else None, UUID(job_id))


def _mark(choice: Choice) -> str:
    return hashlib.sha256(repr(choice).encode()).hexdigest()[:8]


def _statuses(status: Status | None, outcome: Outcome | None) -> tuple[Status, ...]:
    return tuple(
        one for one in Status if status in (None, one) and (outcome is None or outcome in OUTCOMES[one])
    )


def _active(statuses: tuple[Status, ...], freshness: Freshness) -> tuple[Status, ...]:
    active = tuple(one for one in statuses if not one.terminal)
    if freshness is Freshness.TERMINAL or (statuses and not active):
        raise ContractError(
            "only active jobs are fresh or stale",
            field="freshness",
            fix="ask for fresh, likely_stale or unknown, of an active status or of all",
        )
    return active


def _one_of(field: str, kind: type[E], value: str | None) -> E | None:
    try:
        return None if value is None else kind(value)
    except ValueError:
        raise ContractError(
            f"{value!r} is no {field}", field=field, fix=f"one of {', '.join(kind)}"
        ) from None


def _moment(field: str, at: Any) -> datetime | None:
    if at is None or (isinstance(at, datetime) and at.tzinfo is not None):
        return at
    raise ContractError("no time with a zone", field=field, fix="use datetime(..., tzinfo=UTC)")


def _names(metadata: Mapping[str, Any] | None) -> str | None:
    if not metadata:
        return None
    if len(metadata) > _MOST_NAMES:
        raise ContractError(f"more than {_MOST_NAMES} names", field="metadata", fix="ask for less")
    for name, value in metadata.items():
        checked_text("metadata", name)
        if not isinstance(value, Scalar) or (isinstance(value, float) and not isfinite(value)):
            raise ContractError("not a plain value", field=f"metadata.{name}", fix="use a text or a number")
        if isinstance(value, str) and value:
            checked_text(f"metadata.{name}", value)
    return json.dumps(dict(metadata), sort_keys=True)
