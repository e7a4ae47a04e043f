"""Categories, queues and the policies a job is run by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator


class Category(StrEnum):
    """What kind of work a job type is; gives it its queue and its defaults."""

    DEFAULT = "default"
    NOTIFICATION = "notification"
    AUDIT = "audit"
    PLANNING = "planning"
    TRANSFER = "transfer"
    MAINTENANCE = "maintenance"
    DOCUMENT = "document"


CRITICAL = "q:critical"
DEADLETTER = "q:deadletter"
QUEUES = (
    CRITICAL,
    "q:default",
    "q:notifications",
    "q:planning",
    "q:exports",
    "q:maintenance",
    DEADLETTER,
)
"""The queues every installation has."""

_FOREVER = timedelta(days=18_250)
Positive = Annotated[timedelta, Field(gt=timedelta(0), le=_FOREVER)]
"""A duration that PostgreSQL can count with."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_timedelta="float")


class RetryPolicy(_Value):
    """How often a job is tried, and how long it waits in between."""

    max_attempts: int = Field(default=5, ge=1, le=100)
    base: Positive = timedelta(seconds=5)
    cap: Positive = timedelta(minutes=5)
    delays: tuple[Positive, ...] = ()
    """Fixed waits instead of the exponential ones; the last one repeats."""

    def delay(self, failures: int, chance: float) -> timedelta:
        """The wait after so many failures; `chance` in [0, 1) is the full jitter."""
        if self.delays:
            return self.delays[min(failures, len(self.delays)) - 1]
        # In float seconds, because a timedelta would overflow before the cap is applied.
        ceiling = min(self.cap.total_seconds(), self.base.total_seconds() * 2.0 ** min(failures - 1, 64))
        return timedelta(seconds=ceiling * chance)


class LifecyclePolicy(_Value):
    """When a job is too old to be believed, and who puts it right."""

    covered: bool = True
    queued_stale_after: Positive = timedelta(hours=24)
    running_stale_after: Positive = timedelta(hours=6)
    expected_max_runtime: Positive = timedelta(minutes=30)
    requires_failed_bridge: bool = False
    supports_reconciliation: bool = True


class JobPolicy(_Value):
    """Everything a job is run by; resolved at enqueue and stored on the job."""

    category: Category = Category.DEFAULT
    queue: str = Field(default="q:default", pattern=r"^q:[a-z][a-z0-9_-]{0,47}$")
    priority: int = Field(default=0, ge=-1000, le=1000)
    retry: RetryPolicy = RetryPolicy()
    lifecycle: LifecyclePolicy = LifecyclePolicy()
    timeout: Positive = timedelta(hours=1)
    ledger_ttl: Positive = timedelta(days=7)
    schedulable: bool = False

    @cached_property
    def as_json(self) -> str:
        """The policy as it is stored on the job."""
        return self.model_dump_json()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values, and with its own JSON: pydantic would hand on the cached one."""
        copied = super().model_copy(update=update, deep=deep)
        copied.__dict__.pop("as_json", None)
        return copied

    @model_validator(mode="after")
    def _runs_somewhere(self) -> Self:
        if self.queue == DEADLETTER:
            raise ValueError(f"queue: {DEADLETTER} is where dead jobs rest; choose another queue")
        return self


@lru_cache(maxsize=1024)
def stored_policy(text: str) -> JobPolicy:
    """A policy as it was stored, as far as it is understood: a later version may have written more.

    Jobs of a type share theirs, so that it is read once.
    """
    kept = json.loads(text)
    for _ in range(2):
        try:
            return JobPolicy.model_validate(kept)
        except ValidationError as error:
            for wrong in error.errors(include_url=False, include_context=False):
                _forget(kept, wrong["loc"])
    return JobPolicy()


def _forget(values: Any, place: tuple[int | str, ...]) -> None:
    *outer, name = place or ("",)
    for step in outer:
        values = values.get(step) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop(name, None)


EXPEDITE = 50
"""The priority of the `expedite` class."""


def _retry(max_attempts: int, cap: timedelta) -> RetryPolicy:
    return RetryPolicy(max_attempts=max_attempts, cap=cap)


_WEEK, _MONTH = timedelta(days=7), timedelta(days=30)
_DOCUMENT_DELAYS = (timedelta(seconds=60), timedelta(seconds=300), timedelta(seconds=1800))

DEFAULTS: MappingProxyType[Category, JobPolicy] = MappingProxyType(
    {
        Category.DEFAULT: JobPolicy(),
        Category.NOTIFICATION: JobPolicy(
            category=Category.NOTIFICATION,
            queue="q:notifications",
            retry=_retry(10, timedelta(minutes=30)),
            schedulable=True,
        ),
        Category.AUDIT: JobPolicy(category=Category.AUDIT),
        Category.PLANNING: JobPolicy(
            category=Category.PLANNING,
            queue="q:planning",
            retry=_retry(3, timedelta(minutes=2)),
            ledger_ttl=_MONTH,
        ),
        Category.TRANSFER: JobPolicy(
            category=Category.TRANSFER,
            queue="q:exports",
            retry=_retry(5, timedelta(minutes=10)),
            ledger_ttl=_MONTH,
        ),
        Category.MAINTENANCE: JobPolicy(
            category=Category.MAINTENANCE, queue="q:maintenance", schedulable=True, ledger_ttl=_WEEK
        ),
        Category.DOCUMENT: JobPolicy(
            category=Category.DOCUMENT,
            retry=RetryPolicy(max_attempts=4, delays=_DOCUMENT_DELAYS),
            ledger_ttl=_MONTH,
        ),
    }
)
"""What a job type has unless it says otherwise."""
