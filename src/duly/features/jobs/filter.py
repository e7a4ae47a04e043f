"""What is asked of a list of jobs, checked; and the places where its pages begin."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from typing import Any, TypedDict, TypeVar
from uuid import UUID

from duly.core import payload as payload_path
from duly.core.errors import ContractError
from duly.core.freshness import Freshness
from duly.core.states import OUTCOMES, Outcome, Status
from duly.features.jobs.all_orgs_store import checked_spot
from duly.features.jobs.filter_store import NEWEST, Choice, Place
from duly.features.pagination import decode_cursor, encode_cursor
from duly.jobs.request_context import checked_text

E = TypeVar("E", bound=StrEnum)
Scalar = str | int | float | bool | None
MOST_IDS = 500
"""How many jobs may be named at a time."""
_MOST_NAMES = 10


class Filters(TypedDict, total=False):
    """What may be asked of jobs; what is left out, or None, does not matter."""

    status: Status | str | None
    outcome: Outcome | str | None
    job_type: str | None
    """A name, or the beginning of some: `report.*`."""
    queue: str | None
    subject_id: str | None
    freshness: Freshness | str | None
    """Of active jobs only, as far as a queue or a worker has them."""
    error_code: str | None
    fingerprint: str | None
    """The kind of failure that they died of, as the groups of dead letters name it."""
    created_after: datetime | None
    """It includes its moment."""
    created_before: datetime | None
    """It does not include its moment."""
    metadata: Mapping[str, Scalar] | None
    """Names and their values, compared as text."""
    payload: Mapping[str, Scalar] | None
    """Paths and the plain values found there, compared as text: `{"region": "DE", "items.0.sku": "X"}`."""
    job_ids: Sequence[UUID | str] | None
    """These alone; among all orgs each as `org_id/job_id`."""


def choose(org_id: UUID | None, wanted: Filters) -> Choice:
    """The jobs for which all of this is so; without any status if there can be none."""
    ended = _one_of("outcome", Outcome, wanted.get("outcome"))
    statuses = _statuses(_one_of("status", Status, wanted.get("status")), ended)
    fresh = _one_of("freshness", Freshness, wanted.get("freshness"))
    if fresh is not None:
        statuses = _active(statuses, fresh)
    job_type = checked_text("job_type", wanted.get("job_type"))
    prefix = job_type is not None and job_type.endswith("*")
    return Choice(
        org_id,
        statuses,
        None if ended and all(OUTCOMES[one] == {ended} for one in statuses) else ended,
        None if prefix else job_type,
        checked_text("queue", wanted.get("queue")),
        checked_text("subject_id", wanted.get("subject_id")),
        fresh,
        _moment("created_after", wanted.get("created_after")),
        _moment("created_before", wanted.get("created_before")),
        _names(wanted.get("metadata")),
        job_type[:-1] if job_type and prefix else None,
        _paths(wanted.get("payload")),
        checked_text("error_code", wanted.get("error_code")),
        checked_text("fingerprint", wanted.get("fingerprint")),
        keys=_keys(org_id, wanted.get("job_ids")),
    )


def start_of(choice: Choice, after: str | None) -> Place:
    """Where a page begins. What lies behind a page of other jobs is not what follows here."""
    found = decode_cursor(after, _read_place)
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
    spot = [end.spot] if choice.org_id is None else []
    return encode_cursor(_mark(choice), "" if end.at is None else end.at.isoformat(), end.job_id, *spot)


def _read_place(mark: str, at: str, job_id: str, spot: str = "") -> tuple[str, Place]:
    moment = datetime.fromisoformat(at).astimezone(UTC) if at else None
    return mark, Place(moment, UUID(job_id), spot=checked_spot(spot))


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


def _paths(payload: Mapping[str, Any] | None) -> str | None:
    if not payload:
        return None
    return json.dumps(
        [{"path": one.path, "value": one.value} for one in payload_path.payload_conditions(payload)]
    )


def _keys(org_id: UUID | None, job_ids: Sequence[UUID | str] | None) -> tuple[tuple[UUID, UUID], ...] | None:
    if job_ids is None:
        return None
    if isinstance(job_ids, str) or len(job_ids) > MOST_IDS:
        raise ContractError(f"more than {MOST_IDS}, or no list", field="job_ids", fix="ask by filters")
    return tuple(sorted({_key(org_id, str(one)) for one in job_ids}))


def _key(org_id: UUID | None, text: str) -> tuple[UUID, UUID]:
    whose, _, which = text.rpartition("/")
    try:
        if bool(whose) == (org_id is None):
            return org_id or UUID(whose), UUID(which)
    except ValueError:
        pass
    fix = "write each as its id" if org_id else "write each as org_id/job_id"
    raise ContractError(f"{text[:80]!r} is no job", field="job_ids", fix=fix)
