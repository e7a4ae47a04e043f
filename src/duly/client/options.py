"""What a single enqueue may say beyond the payload."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypedDict, Unpack
from uuid import UUID

from duly.client.context import (
    NOTHING,
    Surroundings,
    as_uuid,
    checked_actor,
    checked_text,
    checked_traceparent,
)
from duly.model import payload as rules
from duly.model.errors import ContractError, Unschedulable
from duly.model.job import Actor
from duly.model.policy import CRITICAL, EXPEDITE, Category, JobPolicy


class Choices(TypedDict, total=False):
    """The keywords of `job.options(...)`."""

    org_id: UUID | str
    project_id: UUID | str
    actor: Actor
    request_id: str
    correlation_id: str
    traceparent: str
    subject_id: str
    priority: int
    expedite: bool
    critical: bool
    scheduled_for: datetime
    idempotency_key: str
    run_identity: Any
    metadata: dict[str, Any]
    conn: Any


@dataclass(frozen=True, slots=True)
class Options:
    """The choices, checked."""

    surroundings: Surroundings = NOTHING
    subject_id: str | None = None
    priority: int | None = None
    critical: bool = False
    scheduled_for: datetime | None = None
    idempotency_key: str | None = None
    run_identity_hash: str | None = None
    metadata: dict[str, Any] | None = None
    conn: Any = None

    @classmethod
    def of(cls, **choices: Unpack[Choices]) -> Options:
        """Read the keywords; wrong ones are named."""
        if not _KNOWN.issuperset(choices):
            unknown = min(set(choices) - _KNOWN)
            raise ContractError("no such option", field=unknown, fix=f"one of {sorted(_KNOWN)}")
        said: dict[str, Any] = {name: value for name, value in choices.items() if value is not None}
        around = {name: read(said.pop(name)) for name, read in _AROUND.items() if name in said}
        own = {name: read(said.pop(name)) for name, read in _OWN.items() if name in said}
        if "run_identity" in said:
            own["run_identity_hash"] = _identity_hash(said.pop("run_identity"))
        if said.pop("expedite", False):
            said["priority"] = EXPEDITE
        return cls(surroundings=Surroundings(**around) if around else NOTHING, **own, **said)

    def applied_to(self, job_type: str, policy: JobPolicy) -> JobPolicy:
        """The policy of one job: its type's, with what this call says."""
        if self.scheduled_for is not None:
            _check_schedule(job_type, policy, self.scheduled_for)
        changes: dict[str, Any] = {}
        if self.priority is not None:
            changes["priority"] = _checked_priority(self.priority)
        if self.critical:
            changes["queue"] = _critical_queue(job_type, policy)
        return policy.model_copy(update=changes) if changes else policy


def _check_schedule(job_type: str, policy: JobPolicy, at: Any) -> None:
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise ContractError("has no time zone", field="scheduled_for", fix="use datetime(..., tzinfo=UTC)")
    if at.year > _LAST_YEAR:
        raise ContractError("too far", field="scheduled_for", fix=f"no later than the year {_LAST_YEAR}")
    if not policy.schedulable:
        raise Unschedulable(
            f"{job_type} may not be delayed", field="scheduled_for", fix="declare it with schedulable=True"
        )


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"not JSON: {error}", field="metadata", fix="use plain values") from None
    if not isinstance(metadata, dict):
        raise ContractError("not an object", field="metadata", fix="pass a dict")
    rules.check(metadata, size, "metadata")
    return metadata


def _checked_priority(priority: int) -> int:
    if type(priority) is not int or not -1000 <= priority <= 1000:
        raise ContractError(f"{priority!r} is out of range", field="priority", fix="use -1000 to 1000")
    return priority


def _critical_queue(job_type: str, policy: JobPolicy) -> str:
    if policy.category is not Category.DEFAULT:
        raise ContractError(
            f"{job_type} is of category {policy.category}",
            field="critical",
            fix=f"{CRITICAL} is for default jobs",
        )
    return CRITICAL


_LAST_YEAR = 9998
"""Wherever the reader is, no time of it is one of the year 10000, which Python cannot read."""
_KNOWN = frozenset(Choices.__annotations__)
_AROUND: dict[str, Callable[[Any], Any]] = {
    "org_id": partial(as_uuid, "org_id"),
    "actor": checked_actor,
    "project_id": partial(as_uuid, "project_id"),
    "request_id": partial(checked_text, "request_id"),
    "correlation_id": partial(checked_text, "correlation_id"),
    "traceparent": checked_traceparent,
}
_OWN: dict[str, Callable[[Any], Any]] = {
    "subject_id": partial(checked_text, "subject_id"),
    "idempotency_key": partial(checked_text, "idempotency_key"),
    "metadata": _checked_metadata,
}


def _identity_hash(identity: Any) -> str:
    text = json.dumps(identity, sort_keys=True, default=_stable, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _stable(value: Any) -> Any:
    # The order within a set differs from process to process.
    return sorted(map(str, value)) if isinstance(value, set | frozenset) else str(value)
