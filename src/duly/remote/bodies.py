"""What callers say: the options of a job, the filters of a list, and how they are written."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Required, TypedDict
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from duly.model.errors import ContractError
from duly.model.freshness import ShownFreshness
from duly.model.states import Outcome, Status

Payload = Mapping[str, Any] | BaseModel
_PAGE = 100


class Choices(TypedDict, total=False):
    """The keywords of `submit`."""

    subject_id: str
    idempotency_key: str
    priority: int
    expedite: bool
    critical: bool
    scheduled_for: datetime
    run_identity: Any
    metadata: Mapping[str, Any]
    project_id: UUID | str
    correlation_id: str


class Submission(Choices, total=False):
    """One of the jobs of `submit_many`."""

    job_type: Required[str]
    payload: Payload


class Filters(TypedDict, total=False):
    """The keywords of `jobs`: all of it must be so."""

    status: Status | str
    outcome: Outcome | str
    job_type: str
    queue: str
    subject_id: str
    freshness: ShownFreshness | str
    created_after: datetime
    created_before: datetime
    metadata: Mapping[str, object]


def submission(said: Submission) -> dict[str, Any]:
    """A job with a key of its own: sent twice, it is still one job."""
    known = {name: value for name, value in said.items() if value is not None}
    return {"idempotency_key": str(uuid.uuid4()), **known}


def written(body: Any) -> bytes:
    """JSON. Times, ids and models may be inside."""
    try:
        return to_json(body)
    except (PydanticSerializationError, ValueError) as error:
        raise ContractError(f"not JSON: {error}", field="payload", fix="use plain values") from None


def header(field: str, value: str) -> str:
    """A text that can be sent in a header."""
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise ContractError(
            "cannot be sent in a header", field=field, fix="use plain ASCII, without line ends"
        )
    return value


def query(filters: Filters) -> dict[str, Any]:
    """Filters as parameters. One that nobody knows would show more than was asked for, so it is refused."""
    if unknown := set(filters) - set(Filters.__annotations__):
        raise ContractError(
            "no such filter", field=min(unknown), fix=f"one of {sorted(Filters.__annotations__)}"
        )
    said: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    pairs = said.pop("metadata", {})
    times = {name: value.isoformat() for name, value in said.items() if isinstance(value, datetime)}
    metadata = {"metadata": [f"{key}:{value}" for key, value in pairs.items()]} if pairs else {}
    return {**said, **times, **metadata, "limit": _PAGE}


def identifier(field: str, value: UUID | str) -> UUID:
    """A uuid, also from its text."""
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise ContractError(f"{value!r} is not a uuid", field=field, fix="pass a uuid or its text") from None
