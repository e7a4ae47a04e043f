"""The options of a single enqueue, and the ids of new jobs."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypedDict, Unpack
from uuid import UUID

from duly.core import payload as rules
from duly.core.errors import ContractError, Unschedulable
from duly.core.job import Actor
from duly.core.policy import CRITICAL_QUEUE, EXPEDITE_PRIORITY, Category, JobPolicy
from duly.jobs.request_context import (
    EMPTY_CONTEXT,
    RequestContext,
    as_uuid,
    checked_actor,
    checked_text,
    checked_traceparent,
)


class EnqueueKeywords(TypedDict, total=False):
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
class EnqueueOptions:
    """The checked options of `job.options(...)`."""

    context: RequestContext = EMPTY_CONTEXT
    subject_id: str | None = None
    priority: int | None = None
    critical: bool = False
    scheduled_for: datetime | None = None
    idempotency_key: str | None = None
    run_identity_hash: str | None = None
    metadata: dict[str, Any] | None = None
    conn: Any = None

    @classmethod
    def of(cls, **keywords: Unpack[EnqueueKeywords]) -> EnqueueOptions:
        """Check the keywords; an unknown one raises."""
        if not _KNOWN.issuperset(keywords):
            unknown = min(set(keywords) - _KNOWN)
            raise ContractError("unknown option", field=unknown, fix=f"use one of {sorted(_KNOWN)}")
        given: dict[str, Any] = {name: value for name, value in keywords.items() if value is not None}
        context = {name: check(given.pop(name)) for name, check in _CONTEXT_CHECKS.items() if name in given}
        own = {name: check(given.pop(name)) for name, check in _OWN_CHECKS.items() if name in given}
        if "run_identity" in given:
            own["run_identity_hash"] = _identity_hash(given.pop("run_identity"))
        if given.pop("expedite", False):
            given["priority"] = EXPEDITE_PRIORITY
        return cls(context=RequestContext(**context) if context else EMPTY_CONTEXT, **own, **given)

    def apply_to(self, job_type: str, policy: JobPolicy) -> JobPolicy:
        """Return the policy of one job: that of its type, changed by these options."""
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
        raise ContractError(
            f"the year {at.year} is too late", field="scheduled_for", fix=f"use a year up to {_LAST_YEAR}"
        )
    if not policy.schedulable:
        raise Unschedulable(
            f"{job_type} cannot be delayed", field="scheduled_for", fix="declare it with schedulable=True"
        )


def _checked_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(metadata))
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"not JSON: {error}", field="metadata", fix="use plain values") from None
    if not isinstance(metadata, dict):
        raise ContractError("not an object", field="metadata", fix="pass a dict")
    rules.check_payload(metadata, size, "metadata")
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
            fix=f"{CRITICAL_QUEUE} is for default jobs",
        )
    return CRITICAL_QUEUE


_LAST_YEAR = 9998
"""In no time zone does it reach the year 10000, which Python cannot represent."""
_KNOWN = frozenset(EnqueueKeywords.__annotations__)
_CONTEXT_CHECKS: dict[str, Callable[[Any], Any]] = {
    "org_id": partial(as_uuid, "org_id"),
    "actor": checked_actor,
    "project_id": partial(as_uuid, "project_id"),
    "request_id": partial(checked_text, "request_id"),
    "correlation_id": partial(checked_text, "correlation_id"),
    "traceparent": checked_traceparent,
}
_OWN_CHECKS: dict[str, Callable[[Any], Any]] = {
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


_MILLISECOND = 1_000_000
_VERSION, _VARIANT = 0x7 << 12, 0b10 << 62


def new_ids(count: int) -> Iterator[tuple[str, str]]:
    """Yield the ids of so many new jobs and of their results, as hexadecimal digits.

    The id of a job is a uuid v7: 48 bits of milliseconds, 12 of their fraction, 62 of chance; ids sort by
    time. That of its result has 128 random bits: a permalink cannot be guessed.
    """
    random = os.urandom(24 * count)  # once, because a system call costs more than an id
    first = (time.time_ns() << 12) // _MILLISECOND
    # A tick apart, a quarter of a microsecond, so that jobs of one call sort as they were given.
    words = [
        word
        for tick, chance in enumerate(struct.unpack_from(f">{count}Q", random), first)
        for word in (tick >> 12 << 16 | _VERSION | tick & 0xFFF, _VARIANT | chance >> 2)
    ]
    job_ids = struct.pack(f">{2 * count}Q", *words).hex()
    result_ids = random[8 * count :].hex()
    for at in range(0, 32 * count, 32):
        yield job_ids[at : at + 32], result_ids[at : at + 32]
