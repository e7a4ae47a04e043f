"""Requests: the options of a job, the filters of a list, and how they are encoded."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Required, TypedDict
from uuid import UUID

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from duly.core.errors import ContractError
from duly.core.freshness import FreshnessLabel
from duly.core.states import Outcome, Status

Payload = Mapping[str, Any] | BaseModel
_PAGE_SIZE = 100


class SubmitOptions(TypedDict, total=False):
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


class JobSubmission(SubmitOptions, total=False):
    """One job of `submit_many`."""

    job_type: Required[str]
    payload: Payload


class JobFilters(TypedDict, total=False):
    """The keywords of `jobs`; a job matches all of them."""

    status: Status | str
    outcome: Outcome | str
    job_type: str
    queue: str
    subject_id: str
    freshness: FreshnessLabel | str
    created_after: datetime
    created_before: datetime
    metadata: Mapping[str, object]


def submission_body(submission: JobSubmission) -> dict[str, Any]:
    """Return the body of a submission, with an idempotency key: sent twice, it is one job."""
    given = {name: value for name, value in submission.items() if value is not None}
    return {"idempotency_key": str(uuid.uuid4()), **given}


def encode_json(body: Any) -> bytes:
    """Encode a body that may contain times, ids and models."""
    try:
        return to_json(body)
    except (PydanticSerializationError, ValueError) as error:
        raise ContractError(f"not JSON: {error}", field="payload", fix="use plain values") from None


def header_value(field: str, value: str) -> str:
    """Return a text that a header can contain, or raise."""
    if not (value.isascii() and value.isprintable()) or value != value.strip():
        raise ContractError(
            "a header cannot contain it", field=field, fix="use plain ASCII without line breaks"
        )
    return value


def filter_params(filters: JobFilters) -> dict[str, Any]:
    """Return filters as query parameters. An unknown one raises: ignored, it would match more jobs."""
    if unknown := set(filters) - set(JobFilters.__annotations__):
        raise ContractError(
            "unknown filter", field=min(unknown), fix=f"use one of {sorted(JobFilters.__annotations__)}"
        )
    given: dict[str, Any] = {name: value for name, value in filters.items() if value is not None}
    pairs = given.pop("metadata", {})
    times = {name: value.isoformat() for name, value in given.items() if isinstance(value, datetime)}
    metadata = {"metadata": [f"{key}:{value}" for key, value in pairs.items()]} if pairs else {}
    return {**given, **times, **metadata, "limit": _PAGE_SIZE}


def parse_id(field: str, value: UUID | str) -> UUID:
    """Return a uuid, also from its text."""
    try:
        return value if isinstance(value, UUID) else UUID(value)
    except (ValueError, AttributeError, TypeError):
        raise ContractError(f"{value!r} is not a uuid", field=field, fix="pass a uuid or its text") from None
