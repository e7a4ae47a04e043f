"""Orgs and their projects, pages of them, and the shares of orgs in the workers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from duly.features.pagination import Count


class OrgStatus(StrEnum):
    """Whether an org may enqueue jobs and sign in."""

    ACTIVE = "active"
    SUSPENDED = "suspended"


class Org(BaseModel):
    """One org."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    name: str
    status: OrgStatus
    created_at: datetime
    updated_at: datetime


class Project(BaseModel):
    """A project of an org."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    project_id: UUID
    name: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class OrgPage:
    """A page of orgs; `after` is the cursor of the next page."""

    orgs: tuple[Org, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class ProjectPage:
    """A page of projects; `after` is the cursor of the next page."""

    projects: tuple[Project, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Share:
    """The share of an org in the workers, its queued jobs, and its limits as a whole; None is no limit."""

    org_id: UUID
    name: str
    status: OrgStatus
    running: int
    part: float
    """The part of all slots that its jobs occupy."""
    fair_part: float
    """The part of each active org if all have the same."""
    waiting: Count
    """Queued jobs, counted up to 1,000."""
    oldest_waiting_at: datetime | None
    oldest_waiting_age: timedelta | None
    max_running: int | None
    starts_per_second: float | None
    max_waiting: int | None
    paused_at: datetime | None
    pause_reason: str | None

    @property
    def held_back(self) -> bool:
        """Whether the org's own limits delay its jobs, rather than other orgs."""
        full = self.max_running is not None and self.running >= self.max_running
        return self.paused_at is not None or full

    @property
    def short(self) -> bool:
        """Whether the org waits with less than its fair part, and not because of its own limits."""
        return bool(self.waiting.count) and self.part < self.fair_part and not self.held_back


@dataclass(frozen=True, slots=True)
class ActiveShares:
    """The orgs that have queued or running jobs."""

    shares: tuple[Share, ...]
    """Longest wait first; at most 100."""
    slots: int
    """How many jobs the living workers can run at a time."""
    running: int
    active: int
    """How many orgs have queued or running jobs."""
    more: bool
    """Whether there may be more of them."""

    @property
    def short(self) -> int:
        """How many of these orgs have less than their fair part."""
        return sum(share.short for share in self.shares)


@dataclass(frozen=True, slots=True)
class SharePage:
    """A page of shares; `after` is the cursor of the next page."""

    shares: tuple[Share, ...]
    after: str | None
