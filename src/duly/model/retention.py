"""How long things are kept."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

# Beyond that, the moment would lie before the first uuid v7 there can be.
Kept = Annotated[timedelta, Field(gt=timedelta(0), le=timedelta(days=50 * 365))]


class Retention(BaseModel):
    """The least time that rows of each kind are kept; what is still needed then stays longer."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    events: Kept = Field(
        default=timedelta(days=30),
        description="Events of a job, what it logged, what webhooks were told.",
    )
    partial_results: Kept = Field(default=timedelta(days=14), description="Results of chunks.")
    final_results: Kept = Field(default=timedelta(days=90), description="Final results.")
    jobs: Kept = Field(
        default=timedelta(days=400),
        validate_default=True,
        description="Ended jobs: who asked for what, how it ended. No shorter than their events and results.",
    )
    schedule_ticks: Kept = Field(
        default=timedelta(days=400), description="Which ticks of a schedule ran, and which were missed."
    )
    audit: Kept | None = Field(default=None, description="Audit entries; without it, for ever.")
    stopped_workers: Kept = Field(default=timedelta(days=7), description="Workers that have gone.")
    notifications: Kept = Field(
        default=timedelta(days=90), description="What people were told, and subscriptions of ended jobs."
    )

    @field_validator("jobs")
    @classmethod
    def _outlives_its_history(cls, value: timedelta, info: ValidationInfo) -> timedelta:
        for name in ("events", "partial_results", "final_results"):
            longest = info.data.get(name, value)
            if value < longest:
                raise ValueError(f"{value} is less than {name}, {longest}: keep jobs at least that long")
        return value
