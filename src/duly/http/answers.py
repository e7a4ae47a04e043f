"""Answers: models as JSON, 202 with its links, entity tags, and how long a caller prefers to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from pydantic import BaseModel
from starlette.responses import Response

from duly.control.jobs import Glance
from duly.http.caller import Caller
from duly.http.shapes import ROOM, Accepted
from duly.model.states import Status

_WAIT = re.compile(r"(?:^|[,;\s])wait=(\d{1,6})(?:$|[,;\s])")
_TAGS = re.compile(r'(?:W/)?"[^"]*"|\*')


def as_json(model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A model as it is, without a second validation."""
    return Response(model.model_dump_json(), status, dict(headers or {}), media_type="application/json")


def accepted(
    who: Caller, job_id: UUID, subject_id: str | None, *, replayed: bool = False, room: str = ROOM
) -> Response:
    """202: where to look for it, and when."""
    said = links(who, job_id, subject_id, room)
    headers = {"location": said.status_url, "retry-after": "1"}
    if replayed:
        headers["idempotency-replayed"] = "true"
    return as_json(said, 202, headers)


def links(who: Caller, job_id: UUID, subject_id: str | None, room: str = ROOM) -> Accepted:
    """What the caller is told of every accepted job."""
    place = who.link(f"{room}/jobs/{job_id}")
    return Accepted(
        job_id=job_id,
        subject_id=subject_id,
        status=Status.QUEUED,
        status_url=place,
        events_url=f"{place}/events",
    )


def etag(seen: Glance) -> str:
    """The same for the same state of a job; weak, as the moment of the look is no change."""
    job = seen.job
    return f'W/"{seen.event_seq}-{job.attempt}-{job.updated_at.timestamp():f}-{seen.freshness.state}"'


def matches(if_none_match: str, tag: str) -> bool:
    """Whether the caller has it already."""
    return any(
        given == "*" or given.removeprefix("W/") == tag.removeprefix("W/")
        for given in _TAGS.findall(if_none_match)
    )


def preferred_wait(prefer: str | None, most: timedelta) -> float:
    """The seconds of `Prefer: wait=N`, no more than is allowed."""
    found = _WAIT.search(prefer or "")
    return min(float(found[1]), most.total_seconds()) if found else 0.0
