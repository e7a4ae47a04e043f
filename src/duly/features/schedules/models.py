"""Schedules, their ticks, and pages of both."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

from pydantic import AfterValidator, BaseModel, ConfigDict

from duly.core.states import Outcome, Status
from duly.features.schedules.cron import Cron, Missed

# In UTC, whatever the session's zone: in the hour of a fold, times of two zones are never equal.
Instant = Annotated[datetime, AfterValidator(lambda at: at.astimezone(UTC))]


class Disposition(StrEnum):
    """What happened to a tick."""

    ENQUEUED = "enqueued"
    MISSED = "missed"


class ScheduleSnapshot(BaseModel):
    """A schedule as it was read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    schedule_id: UUID
    name: str
    cron: str
    timezone: str
    job_type: str
    payload: dict[str, Any]
    missed_policy: Missed
    project_id: UUID | None
    next_tick_at: Instant | None
    last_tick_at: Instant | None
    counted_until: Instant
    """Every tick up to here is recorded, and none after it."""
    paused_at: Instant | None
    paused_by: str | None
    pause_reason: str | None
    retry_at: Instant | None
    last_error: str | None
    """Why its last ticks could not be enqueued; the scheduler tries again at `retry_at`."""
    created_by: str
    created_at: Instant
    updated_at: Instant
    read_at: Instant
    """The database's time when it was read."""

    @property
    def key(self) -> dict[str, UUID]:
        """The key of its row."""
        return {"org_id": self.org_id, "schedule_id": self.schedule_id}

    @property
    def times(self) -> Cron:
        """Its cron expression in its zone; raises if the row was edited by hand and cannot be parsed."""
        return Cron.parse(self.cron, self.timezone)


class Tick(BaseModel):
    """A recorded tick, with the status of its job."""

    model_config = ConfigDict(frozen=True)

    tick_at: Instant
    disposition: Disposition
    job_id: UUID | None
    recorded_at: Instant
    status: Status | None = None
    """The status of its job; None if it has none, or retention deleted it."""
    outcome: Outcome | None = None
    started_at: Instant | None = None
    finished_at: Instant | None = None


@dataclass(frozen=True, slots=True)
class SchedulePage:
    """A page of schedules; `after` is the cursor of the next page."""

    schedules: tuple[ScheduleSnapshot, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class TickPage:
    """A page of ticks, newest first; `after` is the cursor of the next page."""

    ticks: tuple[Tick, ...]
    after: str | None
