"""One change for many jobs: what it would do, or the job that does it."""

from typing import Annotated, cast
from uuid import UUID

from fastapi import APIRouter
from pydantic import Field
from starlette.responses import Response

from duly.bulk import Verb
from duly.control.job_choice import MOST_IDS, Filters
from duly.http.answers import accepted, as_json
from duly.http.caller import Caller
from duly.http.params import Reason, Shown, Text
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import Accepted, Strict
from duly.http.strict import StrictRoute
from duly.http.values import Moment
from duly.model.access import Scope
from duly.model.errors import MissingField
from duly.model.freshness import Freshness
from duly.model.states import Outcome, Status

Plain = str | int | float | bool | None


class JobFilter(Strict):
    """Which jobs: those for which all of this is so."""

    status: Status | None = None
    outcome: Outcome | None = None
    job_type: Text | None = Field(
        default=None, description="A name, or the beginning of some: `report.*`.", examples=["report.build"]
    )
    queue: Text | None = None
    subject_id: Text | None = None
    freshness: Freshness | None = None
    error_code: Text | None = None
    fingerprint: Text | None = Field(default=None, description="The kind of failure that they died of.")
    created_after: Moment | None = None
    created_before: Moment | None = None
    metadata: dict[str, Plain] | None = None
    payload: dict[str, Plain] | None = Field(
        default=None,
        description="Paths and the plain values found there, compared as text.",
        examples=[{"region": "DE", "items.0.sku": "X1"}],
    )
    job_ids: list[UUID] | None = Field(default=None, max_length=MOST_IDS, description="These alone.")

    def filters(self) -> Filters:
        """As the list of jobs takes them."""
        return cast(Filters, self.model_dump(exclude_none=True))


class BulkAction(Strict):
    """A change for every job that fits."""

    verb: Verb
    jobs: JobFilter
    reason: Reason | None = Field(
        default=None, description="Why; kept in the audit trail. Only a dry run needs none."
    )
    per_second: float | None = Field(
        default=None, ge=0.001, le=10_000, strict=True, description="So many replays come due, and no more."
    )
    dry_run: bool = Field(default=False, strict=True, description="Only say what it would do.")


class Counted(Shown):
    """A number that was counted no further than needed."""

    count: int
    at_least: bool


class ImpactShown(Shown):
    """What it would do."""

    verb: Verb
    jobs: Counted
    by_status: dict[Status, Counted]
    left: dict[Status, Counted] = Field(
        description="Those that fit, and are left alone because of what they are."
    )


def routes(service: Service) -> APIRouter:
    """What is done to many."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]

    @api.post(
        "/actions",
        status_code=202,
        response_model=Accepted,
        responses={
            **documented(404, 409, 413, 415),
            200: {"model": ImpactShown, "description": "What it would do."},
        },
    )
    async def act_on_many(request: BulkAction, who: operates) -> Response:
        """Cancel, replay or discard every job that fits and exists by now, as a job of its own."""
        await service.check_everything(who, "change")
        wanted = request.jobs.filters()
        if request.dry_run:
            seen = await service.bulk.impact(who.org_id, request.verb, wanted, actor=who.actor)
            return as_json(ImpactShown.model_validate(seen))
        if request.reason is None:
            raise MissingField("missing", field="reason", fix="say why; it is kept in the audit trail")
        handle = await service.bulk.start(
            who.org_id,
            request.verb,
            wanted,
            actor=who.actor,
            reason=request.reason,
            per_second=request.per_second,
        )
        return accepted(who, handle.job_id, None, replayed=not handle.created)

    return api
