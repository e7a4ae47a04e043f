"""Figures of orgs, queues and limits, as they are shown."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from pydantic import Field

from duly.http.params import Shown
from duly.model.states import Status


class CountShown(Shown):
    """A number that was counted no further than needed."""

    count: int
    at_least: bool = Field(description="Whether there may be more.")


class QueueShareShown(Shown):
    """What the org has waiting in a queue."""

    queue: str
    waiting: CountShown
    oldest_waiting_at: datetime


class OverviewShown(Shown):
    """What the org has. No count goes further than 10,000."""

    looked_at: datetime
    waiting: list[QueueShareShown] = Field(description="Jobs that could start now, by queue.")
    scheduled: CountShown = Field(description="Jobs whose time has not come, retries among them.")
    running: CountShown
    partial: CountShown
    dead_letters: CountShown = Field(description="Those that are open.")
    ended: dict[Status, CountShown] = Field(description="Jobs that ended within a day, by how.")
    suspects: CountShown = Field(description="Jobs that can hardly be believed.")


class LimitShown(Shown):
    """What is limited or paused, and how much of it is used. Null is no limit."""

    job_type: str | None = Field(description="Null: of every job type.")
    max_running: int | None
    starts_per_second: float | None
    burst: int | None
    max_waiting: int | None
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    running: int = Field(description="Jobs that run and were counted; only a limit counts.")
    available: float | None = Field(description="Starts that the rate would allow at once, now.")
    updated_at: datetime | None


class PlatformLimit(LimitShown):
    """The same, of whichever org."""

    org_id: UUID | None = Field(description="Null: of every org.")
