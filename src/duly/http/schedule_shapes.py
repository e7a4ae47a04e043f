"""Schedules as they are asked for and as they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from duly.http.params import Reason, Shown
from duly.http.shapes import Strict
from duly.model.cron import Disposition, Missed
from duly.model.states import Outcome, Status

Cron = Annotated[str, Field(min_length=1, max_length=200, examples=["0 3 * * 1-5"])]
Zone = Annotated[str, Field(min_length=1, max_length=100, examples=["Europe/Berlin"])]
JobType = Annotated[str, Field(min_length=1, max_length=200)]


class NewSchedule(Strict):
    """A job type to be run again and again."""

    name: str = Field(
        min_length=1, max_length=500, pattern="^[^/]+$", description="Without a slash: it is a part of paths."
    )
    cron: Cron
    timezone: Zone = "UTC"
    job_type: JobType
    payload: dict[str, Any] = Field(default={}, description="The arguments of the job type, by name.")
    missed: Missed = Field(
        default=Missed.ONCE, description="What becomes of ticks that nobody was there to run."
    )
    project_id: UUID | None = None
    reason: Reason


class ScheduleChange(Strict):
    """What is to be different; what is left out stays."""

    cron: Cron | None = None
    timezone: Zone | None = None
    job_type: JobType | None = None
    payload: dict[str, Any] | None = None
    missed: Missed | None = None
    reason: Reason


class ScheduleShown(Shown):
    """One schedule as it is now."""

    schedule_id: UUID
    name: str
    cron: str
    timezone: str
    job_type: str
    payload: dict[str, Any]
    missed_policy: Missed
    project_id: UUID | None
    next_tick_at: datetime | None
    last_tick_at: datetime | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    retry_at: datetime | None
    last_error: str | None = Field(
        description="Why it could not be served, if so; it is tried again at `retry_at`."
    )
    created_by: str
    created_at: datetime
    updated_at: datetime


class SchedulesShown(Shown):
    """Some schedules by name; `after` asks for those that follow, and is null at the end."""

    schedules: list[ScheduleShown]
    after: str | None


class TickShown(Shown):
    """What became of one tick."""

    tick_at: datetime
    disposition: Disposition
    job_id: UUID | None
    recorded_at: datetime
    status: Status | None = Field(description="How its job is; null if it has none that is still kept.")
    outcome: Outcome | None


class Ticks(Shown):
    """Ticks that were, the newest first, and ticks to come."""

    recorded: list[TickShown]
    upcoming: list[datetime]
