"""Resources of dead letters: letters, groups of one kind of failure, replays and their results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duly.core.job import Actor
from duly.features.pagination import Count
from duly.jobs.handle import Handle

MAX_LETTERS_COUNTED = 10_000
"""The letters of one group are counted up to this number."""


class Resolution(StrEnum):
    """What was done about a dead letter."""

    REPLAYED = "replayed"
    DISCARDED = "discarded"
    FIXED = "fixed"


class DeadLetter(BaseModel):
    """A job that died, and its resolution."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    org_id: UUID
    job_id: UUID
    job_type: str
    subject_id: str | None
    queue: str
    attempts: int
    fingerprint: str
    error_code: str
    error_class: str
    error_message: str
    dead_at: datetime
    job_retained: bool = Field(serialization_alias="kept")
    """Whether the job still exists; the subject of a letter without a job is unknown."""
    resolution: Resolution | None
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_reason: str | None
    successor_job_id: UUID | None


class DeadLetterDetail(DeadLetter):
    """A dead letter with its error and the input of its job; the input is None after retention."""

    error_context: dict[str, Any]
    project_id: UUID | None
    correlation_id: str | None
    payload: dict[str, Any] | None
    payload_ref: str | None
    replay_of: UUID | None
    created_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeadLetterPage:
    """A page of dead letters; `after` is the cursor of the next page, None on the last one."""

    letters: tuple[DeadLetter, ...]
    after: str | None


class _Group(BaseModel):
    """The dead letters of one kind of failure, described by the latest one."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    job_id: UUID
    """The latest one."""
    job_type: str
    error_code: str
    error_class: str
    error_message: str
    last_dead_at: datetime


class DeadLetterGroup(_Group):
    """The open dead letters of one kind of failure in an org; the message is the latest one's."""

    org_id: UUID
    letters: int
    """Counted to 10,000."""
    first_dead_at: datetime
    org_name: str | None = None
    """Set in lists of several orgs."""


class FailureGroup(_Group):
    """The open dead letters of one kind of failure, in an org or in all orgs."""

    org_id: UUID
    """The org of the latest one."""
    org_name: str | None = None
    """Set in lists of several orgs."""
    letters: Count
    orgs: int
    """The number of orgs of the latest 200."""
    first_dead_at: datetime


class Successor(BaseModel):
    """The new job of a resolved dead letter."""

    model_config = ConfigDict(frozen=True)

    letter_job_id: UUID
    job_id: UUID
    resolution: Resolution
    resolved_at: datetime
    resolved_by: str
    status: str
    """Its status; `gone` if the job no longer exists."""
    outcome: str
    subject_id: str | None


class DeadLetterGroupDetail(_Group):
    """One kind of failure: its open dead letters, and the resolutions of the latest ones."""

    error_context: dict[str, Any]
    letters: int
    """The open ones, counted to 10,000."""
    first_dead_at: datetime | None
    """When the first of the open ones died."""
    resolved: dict[Resolution, int]
    """The number per resolution, of the last thousand letters."""
    successor_statuses: dict[str, int]
    """The number of new jobs per status, or `dead` if they died again; of the last two hundred."""
    successors: tuple[Successor, ...]
    """The latest new jobs."""


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The result of a replay of many dead letters."""

    replayed: tuple[Handle[Any], ...]
    """The new jobs, in the order in which they become due."""
    left: Mapping[UUID, str]
    """The letters that stay open, and the reason."""
    last_run_at: datetime | None
    """When the last of the new jobs becomes due."""


@dataclass(frozen=True, slots=True)
class ReplaySpec:
    """An ended job to replay: after a delay, and with another payload unless that is None."""

    job_id: UUID
    delay: float | None = None
    payload: str | None = None
    payload_ref: str | None = None
    payload_hash: str | None = None

    def as_json(self) -> str:
        """Return the spec as `duly.replay` reads it."""
        fields = {
            "job_id": str(self.job_id),
            "delay": self.delay,
            "payload_ref": self.payload_ref,
            "payload_hash": self.payload_hash,
        }
        return f'{json.dumps(fields)[:-1]}, "payload": {self.payload or "null"}}}'


class ReplayedJob(NamedTuple):
    """The new job of an ended one."""

    job_id: UUID
    created: bool
    """Whether it is new, or existed already."""
    run_at: datetime | None = None
    job_type: str = ""
    queue: str = ""


class ReplayResult(NamedTuple):
    """The replays by the id of the ended job; jobs that no longer exist are in neither mapping."""

    done: dict[UUID, ReplayedJob]
    held: dict[UUID, UUID | None]
    """Jobs whose run identity is held: by an active run, or (None) by another job of the same batch."""


@dataclass(frozen=True, slots=True)
class ResolutionRequest:
    """The org, actor, reason and request of a resolution."""

    org_id: UUID
    actor: Actor
    reason: str
    request_id: str
    traceparent: str | None = None
