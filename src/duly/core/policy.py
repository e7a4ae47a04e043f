"""Categories, queues, and the policies of jobs and of retention."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)


class Category(StrEnum):
    """The kind of work of a job type; determines its queue and its defaults."""

    DEFAULT = "default"
    NOTIFICATION = "notification"
    AUDIT = "audit"
    PLANNING = "planning"
    TRANSFER = "transfer"
    MAINTENANCE = "maintenance"
    DOCUMENT = "document"


CRITICAL_QUEUE = "q:critical"
DEAD_LETTER_QUEUE = "q:deadletter"
QUEUES = (
    CRITICAL_QUEUE,
    "q:default",
    "q:notifications",
    "q:planning",
    "q:exports",
    "q:maintenance",
    DEAD_LETTER_QUEUE,
)
"""The queues every installation has."""

_FOREVER = timedelta(days=18_250)
Positive = Annotated[timedelta, Field(gt=timedelta(0), le=_FOREVER)]
"""A positive duration that fits a PostgreSQL interval."""


class _PolicyModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_timedelta="float")


class RetryPolicy(_PolicyModel):
    """The number of attempts of a job, and the delays between them."""

    max_attempts: int = Field(default=5, ge=1, le=100)
    base: Positive = timedelta(seconds=5)
    cap: Positive = timedelta(minutes=5)
    delays: tuple[Positive, ...] = ()
    """Fixed delays instead of exponential ones; the last one repeats."""

    def delay(self, failures: int, chance: float) -> timedelta:
        """Return the delay after that many failures; `chance` in [0, 1) is the full jitter."""
        if self.delays:
            return self.delays[min(failures, len(self.delays)) - 1]
        # In float seconds, because a timedelta would overflow before the cap is applied.
        ceiling = min(self.cap.total_seconds(), self.base.total_seconds() * 2.0 ** min(failures - 1, 64))
        return timedelta(seconds=ceiling * chance)


class LifecyclePolicy(_PolicyModel):
    """When an active job is stale, and how it is repaired."""

    covered: bool = True
    queued_stale_after: Positive = timedelta(hours=24)
    running_stale_after: Positive = timedelta(hours=6)
    expected_max_runtime: Positive = timedelta(minutes=30)
    requires_failed_bridge: bool = False
    supports_reconciliation: bool = True


class JobPolicy(_PolicyModel):
    """The complete policy of a job; resolved at enqueue and stored on the job."""

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

    @cached_property
    def timeout_seconds(self) -> float:
        """The time-out as a number."""
        return self.timeout.total_seconds()

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a changed copy without the cached values, which pydantic would copy too."""
        copied = super().model_copy(update=update, deep=deep)
        for cached in ("as_json", "timeout_seconds"):
            copied.__dict__.pop(cached, None)
        return copied

    @model_validator(mode="after")
    def _runs_somewhere(self) -> Self:
        if self.queue == DEAD_LETTER_QUEUE:
            raise ValueError(f"queue: {DEAD_LETTER_QUEUE} is reserved for dead letters; choose another queue")
        return self


@lru_cache(maxsize=1024)
def parse_stored_policy(text: str) -> JobPolicy:
    """Parse the policy of a stored job, without fields that a later version may have added.

    Cached, because the jobs of a type share their policy.
    """
    values = json.loads(text)
    for _ in range(2):
        try:
            return JobPolicy.model_validate(values)
        except ValidationError as error:
            for wrong in error.errors(include_url=False, include_context=False):
                _drop_field(values, wrong["loc"])
    return JobPolicy()


def _drop_field(values: Any, location: tuple[int | str, ...]) -> None:
    *outer, name = location or ("",)
    for step in outer:
        values = values.get(step) if isinstance(values, dict) else None
    if isinstance(values, dict):
        values.pop(name, None)


EXPEDITE_PRIORITY = 50
"""The priority of the `expedite` class."""


def _retry(max_attempts: int, cap: timedelta) -> RetryPolicy:
    return RetryPolicy(max_attempts=max_attempts, cap=cap)


_WEEK, _MONTH = timedelta(days=7), timedelta(days=30)
_DOCUMENT_DELAYS = (timedelta(seconds=60), timedelta(seconds=300), timedelta(seconds=1800))

CATEGORY_POLICIES: MappingProxyType[Category, JobPolicy] = MappingProxyType(
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
"""The default policy of the job types of each category."""


# A longer period would begin before the first possible uuid v7.
RetentionPeriod = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=50 * 365))]


class Retention(BaseModel):
    """The least time for which rows of each kind are kept; rows that are still needed stay longer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: RetentionPeriod = Field(
        default=timedelta(days=30),
        description="Events and logs of jobs, and webhook deliveries.",
    )
    partial_results: RetentionPeriod = Field(default=timedelta(days=14), description="Results of chunks.")
    final_results: RetentionPeriod = Field(default=timedelta(days=90), description="Final results.")
    jobs: RetentionPeriod = Field(
        default=timedelta(days=400),
        validate_default=True,
        description="Ended jobs. No shorter than their events and results.",
    )
    schedule_ticks: RetentionPeriod = Field(
        default=timedelta(days=400), description="Ticks of schedules, run and missed."
    )
    audit: RetentionPeriod | None = Field(default=None, description="Audit entries; by default for ever.")
    stopped_workers: RetentionPeriod = Field(default=timedelta(days=7), description="Stopped workers.")
    notifications: RetentionPeriod = Field(
        default=timedelta(days=90), description="Notifications, and subscriptions to ended jobs."
    )

    @field_validator("jobs")
    @classmethod
    def _outlives_its_history(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        for name in ("events", "partial_results", "final_results"):
            period = info.data.get(name, value)
            if value < period:
                raise ValueError(f"{value} is less than {name}, {period}: keep jobs at least that long")
        return value
