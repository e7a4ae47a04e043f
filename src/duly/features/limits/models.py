"""Limits of orgs and job types. In the database a limit is a row of `duly.gates`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Final, Literal, NamedTuple
from uuid import UUID

from pydantic import BaseModel, ConfigDict

EVERY_ORG = UUID(int=0)
EVERY_TYPE = ""


class _Omitted(Enum):
    UNCHANGED = "unchanged"


Unchanged = Literal[_Omitted.UNCHANGED]
UNCHANGED: Final = _Omitted.UNCHANGED
"""The default of fields that a change leaves as they are; None is no limit."""


class LimitKey(NamedTuple):
    """The key of a limit: the zero uuid stands for every org, the empty text for every job type."""

    org_id: UUID = EVERY_ORG
    job_type: str = EVERY_TYPE

    @property
    def name(self) -> str:
        """The target of the limit, for the audit trail."""
        parts = [f"org:{self.org_id}"] if self.org_id != EVERY_ORG else []
        return "/".join([*parts, *([f"job_type:{self.job_type}"] if self.job_type else [])])

    @property
    def bit(self) -> int:
        """The bit in `job_states.counted` of a running job that this limit counted."""
        if self.job_type == EVERY_TYPE:
            return 1
        return 2 if self.org_id == EVERY_ORG else 4


class Limit(BaseModel):
    """The limits and the pause of an org, a job type, or a job type of an org. None is no limit."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID | None
    """None: every org."""
    job_type: str | None
    """None: every job type."""
    max_running: int | None = None
    starts_per_second: float | None = None
    burst: int | None = None
    max_waiting: int | None = None
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    running: int = 0
    """Running jobs; only counted where `max_running` or `starts_per_second` is set."""
    available: float | None = None
    """Starts that the rate allows at once, now."""
    updated_at: datetime | None = None

    @property
    def key(self) -> LimitKey:
        """The key of its row."""
        return LimitKey(self.org_id or EVERY_ORG, self.job_type or EVERY_TYPE)

    @property
    def counts(self) -> bool:
        """Whether running jobs are counted."""
        return self.max_running is not None or self.starts_per_second is not None


@dataclass(frozen=True, slots=True)
class LimitPage:
    """A page of limits; `after` is the cursor of the next page."""

    limits: tuple[Limit, ...]
    after: str | None
