"""The resource of alerts: kinds, severities, the alert itself."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class AlertKind(StrEnum):
    """The condition that an alert reports."""

    QUEUE_DEPTH = "queue_depth"
    OLDEST_AGE = "oldest_age"
    DEAD_RATE = "dead_rate"
    NO_WORKER = "no_worker"
    STALE_RUNS = "stale_runs"
    RELAY_LAG = "relay_lag"
    WEBHOOK_FAILING = "webhook_failing"
    DEAD_LETTER = "dead_letter"


class Severity(StrEnum):
    """The severity of an alert."""

    WARNING = "warning"
    CRITICAL = "critical"


class Alert(BaseModel):
    """A condition that needs attention, or needed it until it was resolved."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    alert_id: UUID
    kind: AlertKind
    target: str
    """What it is about: a queue, a job, an endpoint, or the installation."""
    severity: Severity
    summary: str
    detail: dict[str, Any]
    measured: float | None
    threshold: float | None
    fired_at: datetime
    seen_at: datetime
    """When the condition was last measured."""
    resolved_at: datetime | None


@dataclass(frozen=True, slots=True)
class AlertPage:
    """A page of alerts; `after` is the cursor of the next page, None on the last one."""

    alerts: tuple[Alert, ...]
    after: str | None
