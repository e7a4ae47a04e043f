"""Routes of the audit trail: list entries and events, record a change, verify the chain of seals."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.audit.chain import ChainProblem
from duly.features.audit.enrichment import Versions, enrichment
from duly.features.audit.entries import OWN_TARGETS
from duly.features.audit.models import AuditEntry, AuditEventPage, AuditPage, AuditReport
from duly.features.events.models import FeedEvent
from duly.features.job_submission.routes import IdempotencyKey, enqueue_call
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.http.params import After, PageSize, Reason, StrictModel, Text, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import list_model, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Head = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$", description="The `head` of an earlier report.")]


class RecordChange(StrictModel):
    """Two versions of a record of your product."""

    target_type: str = Field(
        pattern="^[a-z][a-z0-9_]*$",
        max_length=100,
        examples=["run_sheet"],
        description="Not one of Duly's own, such as `key`.",
        json_schema_extra={"not": {"enum": [*sorted(OWN_TARGETS)]}},
    )
    target_id: Text
    before: dict[str, Any] = Field(default={}, description="The old version. Both together: up to 256 KiB.")
    after: dict[str, Any] = Field(default={}, description="The new version.")
    reason: Reason | None = None
    locale: Literal["en", "de"] = Field(default="en", description="The language of the entry.")
    names: dict[str, str] = Field(default={}, description="Labels of fields, by name or path.")
    hide: list[str] = Field(default=[], max_length=100, description="Fields whose values are never recorded.")


AuditEventResponse = response_model(
    FeedEvent,
    "AuditEvent",
    exclude=("org_id", "event_seq", "event_type", "subject_id", "payload_json"),
    action=(
        str,
        Field(description="The audit name of the event.", examples=["job.enqueued", "job.succeeded"]),
    ),
    detail=dict[str, Any],
)
AuditEntryResponse = response_model(AuditEntry)
AuditPageResponse = page_model("entries", AuditEntryResponse)
AuditEventList = list_model(
    "events",
    AuditEventResponse,
    "AuditEvents",
    after=(str, "The cursor of the next page, now or later."),
    more=(bool, "Whether to ask again at once: a page may be short or empty although more events follow."),
)
AuditReportResponse = response_model(
    AuditReport,
    problems=(
        list[response_model(ChainProblem, kind=str)],  # type: ignore[misc]
        "The first hundred.",
    ),
)


def routes(service: Service) -> APIRouter:
    """Return the routes of the audit trail, which is append-only."""
    api = APIRouter(prefix="/v1/audit", tags=["audit"], route_class=StrictRoute)
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]

    @api.get("", response_model=AuditPageResponse, responses=problem_responses())
    async def entries(
        requester: administers,
        actor: Annotated[
            str | None,
            Query(min_length=1, max_length=500, description="The id, alone or as `user:anna`."),
        ] = None,
        action: Annotated[
            str | None,
            Query(
                min_length=1,
                max_length=200,
                examples=["key.created"],
                description="The action, or its first word.",
            ),
        ] = None,
        target_id: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
        since: Timestamp | None = None,
        until: Timestamp | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> AuditPage:
        """List the entries of the org, newest first.

        A filter scans a bounded number of entries: a page may be short or empty although more pages follow.
        """
        return await service.audit.list(
            requester.org_id,
            actor=actor,
            action=action,
            target_id=target_id,
            since=since,
            until=until,
            limit=limit,
            after=after,
        )

    @api.get("/events", response_model=AuditEventList, responses=problem_responses(410))
    async def job_events(
        requester: administers, limit: PageSize = 100, after: After = None
    ) -> AuditEventPage:
        """List the events of the org's jobs under their audit names, in commit order."""
        await service.check_everything(requester)
        return await service.audit.events(requester.org_id, limit=limit, after=after)

    @api.post(
        "/changes", status_code=202, response_model=Accepted, responses=problem_responses(409, 413, 415)
    )
    async def describe_change(
        request: RecordChange, requester: administers, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Record the difference between two versions of a record as an entry.

        Secrets, personal data and hidden fields are recorded as changed, without their values.
        """
        context = {
            "org_id": requester.org_id,
            "actor": requester.actor,
            "idempotency_key": idempotency_key,
        }
        call = await enrichment(service.app, Versions(**dict(request)), context)
        handle = await enqueue_call(service, requester, call)
        return accepted(requester, handle.job_id, None, replayed=not handle.created)

    @api.get("/verify", response_model=AuditReportResponse, responses=problem_responses())
    async def verify(requester: administers, expect: Head = None) -> AuditReport:
        """Verify every entry against its seal, and every seal against the previous one."""
        return await service.audit.verify(requester.org_id, expect=expect)

    @api.post("/verify", status_code=202, response_model=Accepted, responses=problem_responses())
    async def start_verification(requester: administers, expect: Head = None) -> Response:
        """Verify a long audit trail in a job, whose result is the report.

        While one is in flight, a repeated request returns it.
        """
        handle = await service.audit.start_verification(
            requester.org_id, expect=expect, actor=requester.actor
        )
        return accepted(requester, handle.job_id, None, replayed=not handle.created)

    return api
