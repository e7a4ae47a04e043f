"""Dead letters as they are shown, and what may be asked of many of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Self
from uuid import UUID

from pydantic import Field

from duly.control.deadletter import ReplayReport
from duly.http.caller import Caller
from duly.http.params import Shown, Text, Why
from duly.http.values import NUMERIC


class LetterShown(Shown):
    """A job that died, and what was done about it."""

    job_id: UUID
    job_type: str
    subject_id: str | None
    queue: str
    attempts: int
    fingerprint: str = Field(description="The same for failures of one kind.")
    error_code: str
    error_class: str
    error_message: str
    dead_at: datetime
    resolution: str | None = Field(description="`replayed`, `fixed` or `discarded`; null while it is open.")
    resolved_at: datetime | None
    resolved_by: str | None
    resolve_reason: str | None
    successor_job_id: UUID | None


class LetterDetail(LetterShown):
    """A letter with its whole error and its job's input; the latter is null when no longer kept."""

    error_context: dict[str, Any]
    project_id: UUID | None
    correlation_id: str | None
    payload: dict[str, Any] | None
    payload_ref: str | None
    replay_of: UUID | None
    created_at: datetime | None


class LetterPage(Shown):
    """Some letters; `after` asks for those that follow, and is null at the end."""

    letters: list[LetterShown]
    after: str | None


class GroupShown(Shown):
    """The open letters of one kind; the message is the latest one's."""

    fingerprint: str
    job_id: UUID = Field(description="The latest one.")
    job_type: str
    error_code: str
    error_class: str
    error_message: str
    letters: int = Field(description="How many, counted to 10,000.")
    first_dead_at: datetime
    last_dead_at: datetime


class Groups(Shown):
    """The kinds, the latest first."""

    groups: list[GroupShown]


class ReplayMany(Why):
    """Which open letters to replay, the oldest first, and how fast."""

    fingerprint: Text | None = None
    job_type: Text | None = None
    per_second: float = Field(
        ge=0.001, le=10_000, strict=True, description="So many of the new jobs come due, and no more."
    )
    limit: Annotated[int, Field(ge=1, le=1000), NUMERIC] = 100


class DiscardMany(Why):
    """Which open letters to take out of the box, the oldest first."""

    fingerprint: Text | None = None
    job_type: Text | None = None
    limit: Annotated[int, Field(ge=1, le=1000), NUMERIC] = 100


class ManyDiscarded(Shown):
    """What became of many letters."""

    discarded: int = Field(description="How many are out of the box.")


class NewJob(Shown):
    """A job that does the work of a dead one again."""

    job_id: UUID
    status_url: str


class LetterLeft(Shown):
    """A letter that stays in the box, and why."""

    job_id: UUID
    why: str


class ManyReplayed(Shown):
    """What became of many letters."""

    jobs: list[NewJob] = Field(description="In the order in which they may run.")
    left: list[LetterLeft]
    last_run_at: datetime | None = Field(description="When the last of the new jobs may run.")

    @classmethod
    def of(cls, who: Caller, done: ReplayReport) -> Self:
        """As it is shown."""
        made = [handle.job_id for handle in done.replayed]
        return cls(
            jobs=[NewJob(job_id=job, status_url=who.link(f"/v1/jobs/{job}")) for job in made],
            left=[LetterLeft(job_id=job, why=why) for job, why in done.left.items()],
            last_run_at=done.last_run_at,
        )
