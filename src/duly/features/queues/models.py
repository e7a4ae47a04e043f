"""Queues and workers, as operators see them."""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.features.pagination import Count


class Queue(BaseModel):
    """A queue: its weight, its pause, and the thresholds of its alerts."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    queue: str
    weight: int
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    alert_depth: int | None
    """Alert above this number of queued jobs; None: the default of the settings."""
    alert_wait: timedelta | None
    """Alert above this wait; None: the default of the settings."""


class QueueStats(Queue):
    """A queue with its job counts. Of the dead-letter queue, `waiting` counts the open dead letters."""

    waiting: Count
    """Queued jobs that could start now."""
    scheduled: Count
    """Jobs whose time has not come, including retries."""
    running: Count
    oldest_waiting_at: datetime | None
    """When the oldest became runnable, of the jobs that are next of their org and priority."""
    oldest_waiting_age: timedelta | None


class WorkerState(StrEnum):
    """The state of a worker, by its heartbeats."""

    WORKING = "working"
    DRAINING = "draining"
    SILENT = "silent"
    LOST = "lost"


class WorkerSnapshot(BaseModel):
    """A worker that has not stopped."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    worker_id: UUID
    name: str
    host: str
    pid: int
    version: str
    queues: list[str]
    slots: int
    running: int
    lease: timedelta
    started_at: datetime
    heartbeat_at: datetime
    draining_at: datetime | None
    """Since when it claims no more jobs."""
    drain_requested_at: datetime | None
    """When an operator requested the drain."""
    drain_requested_by: str | None
    drain_reason: str | None
    state: WorkerState
