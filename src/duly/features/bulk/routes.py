"""The route of bulk actions: cancel, replay or discard many jobs, or preview that."""

from typing import Annotated, cast
from uuid import UUID

from fastapi import APIRouter
from pydantic import ConfigDict, Field
from starlette.responses import Response

from duly.core.errors import MissingField
from duly.core.freshness import Freshness
from duly.core.principal import Scope
from duly.core.states import Outcome, Status
from duly.features.bulk.plan import Verb
from duly.features.bulk.service import Impact
from duly.features.jobs.filter import MAX_JOB_IDS, JobFilterKeywords, Scalar
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import Reason, StrictModel, Text, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

ImpactResponse = response_model(
    Impact, descriptions={"left": "Matching jobs that are skipped because of their status."}
)


class JobFilterBody(StrictModel):
    """The jobs that match all fields."""

    __qualname__ = "JobFilter"  # in the OpenAPI document
    model_config = ConfigDict(title="JobFilter")

    status: Status | None = None
    outcome: Outcome | None = None
    job_type: Text | None = Field(
        default=None, description="A name, or a prefix: `report.*`.", examples=["report.build"]
    )
    queue: Text | None = None
    subject_id: Text | None = None
    freshness: Freshness | None = None
    error_code: Text | None = None
    fingerprint: Text | None = Field(default=None, description="The kind of the failure.")
    created_after: Timestamp | None = None
    created_before: Timestamp | None = None
    metadata: dict[str, Scalar] | None = None
    payload: dict[str, Scalar] | None = Field(
        default=None,
        description="Paths and their scalar values, compared as text.",
        examples=[{"region": "DE", "items.0.sku": "X1"}],
    )
    job_ids: list[UUID] | None = Field(default=None, max_length=MAX_JOB_IDS, description="Only these.")

    def keywords(self) -> JobFilterKeywords:
        """Return the filters of a job list."""
        return cast(JobFilterKeywords, self.model_dump(exclude_none=True))


class BulkAction(StrictModel):
    """A change of all matching jobs."""

    verb: Verb
    jobs: JobFilterBody
    reason: Reason | None = Field(
        default=None, description="The reason; recorded in the audit trail. Optional in a dry run."
    )
    per_second: float | None = Field(
        default=None, ge=0.001, le=10_000, strict=True, description="How many replays become due per second."
    )
    dry_run: bool = Field(default=False, strict=True, description="Return the impact, and change nothing.")


def routes(service: Service) -> APIRouter:
    """Return the route of bulk actions."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]

    @api.post(
        "/actions",
        status_code=202,
        response_model=Accepted,
        responses={
            **problem_responses(404, 409, 413, 415),
            200: {"model": ImpactResponse, "description": "The impact of the dry run."},
        },
    )
    async def act_on_many(request: BulkAction, requester: operates) -> Response:
        """Cancel, replay or discard all matching jobs that exist by now, in a job of its own."""
        await service.check_everything(requester, "change")
        filters = request.jobs.keywords()
        if request.dry_run:
            impact = await service.bulk.impact(requester.org_id, request.verb, filters, actor=requester.actor)
            return json_response(ImpactResponse.model_validate(impact))
        if request.reason is None:
            raise MissingField("missing", field="reason", fix="give a reason; the audit trail records it")
        handle = await service.bulk.start(
            requester.org_id,
            request.verb,
            filters,
            actor=requester.actor,
            reason=request.reason,
            per_second=request.per_second,
        )
        return accepted(requester, handle.job_id, None, replayed=not handle.created)

    return api
