"""Why a job is where it is: in plain words, with its attempts and the evidence."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.control.jobs import JobDetail
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.freshness import Freshness, ShownFreshness
from duly.model.states import Outcome, Status


class AttemptShown(Shown):
    """One try: from when to when, and which event ended it."""

    attempt: int
    started_at: datetime
    ended_at: datetime | None
    ended_by: str | None
    detail: dict[str, Any]


class Evidence(Shown):
    """Whether a job can still be believed, and why."""

    state: Freshness
    shown: ShownFreshness
    evaluated_at: datetime
    threshold: timedelta | None = Field(description="The age in seconds at which it is no longer believed.")
    overdue: bool
    evidence: dict[str, Any]


class Explanation(Shown):
    """What became of a job, or what it waits for."""

    job_id: UUID
    status: Status
    outcome: Outcome
    explanation: list[str] = Field(description="The first sentence says the most.")
    attempts: list[AttemptShown] = Field(description="The last ones, the oldest of them first.")
    freshness: Evidence

    @classmethod
    def of(cls, found: JobDetail) -> Self:
        """As it is shown. Who of the installation did the work is not."""
        job, judged = found.job, found.freshness
        return cls(
            job_id=job.job_id,
            status=job.status,
            outcome=job.outcome,
            explanation=list(found.explanation),
            attempts=[AttemptShown.model_validate(attempt) for attempt in found.attempts],
            freshness=Evidence(
                state=judged.state,
                shown=judged.shown,
                evaluated_at=judged.evaluated_at,
                threshold=judged.threshold,
                overdue=judged.overdue,
                evidence=dict(judged.evidence),
            ),
        )


def routes(service: Service) -> APIRouter:
    """One question."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]

    @api.get("/{job_id}/explanation", response_model=Explanation, responses=documented(404))
    async def explain(job_id: UUID, who: reads) -> Response:
        """Why it is where it is."""
        found = await service.jobs.show(who.org_id, job_id, outside=True)
        await service.check_subject(who, found.job)
        return as_json(Explanation.of(found))

    return api
