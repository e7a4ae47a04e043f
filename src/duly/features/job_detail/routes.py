"""The route that explains the status of a job."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter

from duly.core.freshness import Assessment
from duly.core.job import JobSnapshot
from duly.core.principal import Scope
from duly.features.job_detail.service import Attempt
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

AttemptResponse = response_model(Attempt, exclude=("worker_id",))
EvidenceResponse = response_model(
    Assessment,
    "FreshnessEvidence",
    exclude=("evidence",),
    descriptions={"threshold": "The age in seconds above which the job counts as stale."},
    evidence=dict[str, Any],
)
ExplanationResponse = response_model(
    JobSnapshot,
    "Explanation",
    include=("job_id", "status", "outcome"),
    explanation=(list[str], "The first sentence is the most important one."),
    attempts=(list[AttemptResponse], "The last ones, oldest first."),  # type: ignore[valid-type]
    freshness=EvidenceResponse,
)


def routes(service: Service) -> APIRouter:
    """Return the route of explanations."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]

    @api.get("/{job_id}/explanation", response_model=ExplanationResponse, responses=problem_responses(404))
    async def explain(job_id: UUID, requester: reads) -> dict[str, object]:
        """Explain the status of a job, with its attempts and the evidence of its freshness."""
        detail = await service.jobs.show(requester.org_id, job_id, for_tenant=True)
        await service.check_subject(requester, detail.job)
        freshness = detail.freshness
        names = EvidenceResponse.model_fields
        return {
            **dict(detail.job),
            "explanation": detail.explanation,
            "attempts": detail.attempts,
            "freshness": {name: getattr(freshness, name) for name in names}
            | {"evidence": dict(freshness.evidence)},
        }

    return api
