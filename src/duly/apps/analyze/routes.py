"""Routes of analyses: small ones at once, larger ones as a job with partial results and a permalink."""

import asyncio
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.apps import analyze
from duly.apps.analyze import AnalyzeRequest, SourceReader, Summary
from duly.core.job import JobEvent, JobSnapshot
from duly.core.principal import Scope
from duly.core.states import Status
from duly.features.events.reader import JobEventReader
from duly.features.events.routes import Accept, After, LastEventId
from duly.features.job_results.routes import ResultResponse, Seq, result_response, visible_result
from duly.features.job_submission.models import JobRequest
from duly.features.job_submission.routes import IdempotencyKey, build_call, enqueue_call
from duly.features.jobs.models import Accepted, CancelRequest, CurrentJobStatus, JobStatus
from duly.features.jobs.responses import accepted, cancel_response, status_response, visible_job
from duly.features.jobs.routes import IfNoneMatch, Prefer
from duly.http import sse as streams
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.sse import resume_after
from duly.http.strict_requests import StrictRoute

_PREFIX = "/analyze"
_MAX_IMMEDIATE_BYTES = 32 * 1024
_IMMEDIATE_TIMEOUT = 2.0


class AnalyzeEvent(BaseModel):
    """An event of an analysis."""

    event_type: str = Field(description="For example `api.analyze.job.partial`.")
    job_id: UUID
    org_id: UUID
    status: Status
    event_seq: int
    occurred_at: datetime
    trace_id: str
    result_id: UUID | None


class AnalyzeEvents(BaseModel):
    """Events in order; `after` is the cursor of the next page."""

    events: list[AnalyzeEvent]
    after: int


def routes(service: Service) -> APIRouter:
    """Return the routes of analyses."""
    api = APIRouter(prefix=_PREFIX, tags=["analyze"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]

    @api.post(
        "",
        response_model=Summary,
        responses={
            **problem_responses(409, 413, 415),
            202: {"model": Accepted, "description": "Enqueued as a job."},
        },
    )
    async def submit(
        request: AnalyzeRequest,
        requester: writes,
        idempotency_key: IdempotencyKey = None,
        prefer: Annotated[str, Header(description="`respond-async`: always as a job.")] = "",
    ) -> Response:
        """Analyze texts: small ones at once, larger ones as a job."""
        is_small = "respond-async" not in prefer and analyze.cost(request) <= _MAX_IMMEDIATE_BYTES
        summary = await _analyze_now(service, requester, request) if is_small else None
        if summary is not None:
            return json_response(summary)
        job_request = JobRequest(job_type=analyze.JOB_TYPE, payload=request.model_dump(mode="json"))
        handle = await enqueue_call(service, requester, build_call(service, job_request, idempotency_key))
        return accepted(requester, handle.job_id, None, replayed=not handle.created, prefix=_PREFIX)

    @api.get(
        "/jobs/{job_id}",
        response_model=CurrentJobStatus,
        responses={**problem_responses(404), 304: {"description": "Not modified."}},
    )
    async def status(
        job_id: UUID, requester: reads, prefer: Prefer = None, if_none_match: IfNoneMatch = None
    ) -> Response:
        """Get the status of an analysis, and the link of its latest result."""
        reading = await visible_job(service, requester, job_id, job_type=analyze.JOB_TYPE)
        return await status_response(service, requester, reading, prefer, if_none_match, _PREFIX)

    @api.get(
        "/jobs/{job_id}/events",
        response_model=AnalyzeEvents,
        responses={**problem_responses(404), 200: streams.stream_documentation("The events in order.")},
    )
    async def events(
        job_id: UUID,
        requester: reads,
        after: After = 0,
        last_event_id: LastEventId = None,
        accept: Accept = "",
    ) -> Response:
        """List the events of an analysis in order, or stream them until it has ended."""
        job = (await visible_job(service, requester, job_id, job_type=analyze.JOB_TYPE)).job

        def to_response(event: JobEvent) -> AnalyzeEvent:
            return _to_analyze_event(job, event)

        reader = JobEventReader(service, requester, job, resume_after(after, last_event_id), to_response)
        if streams.MEDIA_TYPE in accept:
            return await reader.stream()
        page = [to_response(event) for event in await reader.next()]
        return json_response(AnalyzeEvents(events=page, after=reader.after))

    @api.get("/results/{result_id}", response_model=ResultResponse, responses=problem_responses(404))
    async def result(result_id: UUID, requester: reads, seq: Seq = None) -> Response:
        """Get the latest result of an analysis, partial or final, or one by its number."""
        snapshot = await visible_result(service, requester, result_id, seq, analyze.JOB_TYPE)
        return json_response(result_response(requester, snapshot, _PREFIX))

    @api.post(
        "/jobs/{job_id}/cancel",
        status_code=202,
        response_model=JobStatus,
        responses={
            **problem_responses(404, 409, 413, 415),
            200: {"model": JobStatus, "description": "The job has been canceled."},
        },
    )
    async def cancel(job_id: UUID, requester: writes, request: CancelRequest | None = None) -> Response:
        """Cancel an analysis. Idempotent; its partial results stay."""
        before = await visible_job(service, requester, job_id, action="change", job_type=analyze.JOB_TYPE)
        return await cancel_response(service, requester, before, (request or CancelRequest()).reason, _PREFIX)

    return api


async def _analyze_now(service: Service, requester: Requester, request: AnalyzeRequest) -> Summary | None:
    """Return the summary, or None if it takes too long."""
    reader = SourceReader((await service.app.resources()).blobs, requester.org_id)
    try:
        async with asyncio.timeout(_IMMEDIATE_TIMEOUT):
            return await analyze.analyze_now(request, reader)
    except TimeoutError:
        return None


def _to_analyze_event(job: JobSnapshot, event: JobEvent) -> AnalyzeEvent:
    has_result = event.event_type in ("job.partial", "job.completed")
    return AnalyzeEvent(
        event_type=f"api.analyze.{event.event_type}",
        job_id=event.job_id,
        org_id=job.org_id,
        status=event.status,
        event_seq=event.event_seq,
        occurred_at=event.occurred_at,
        trace_id=(job.traceparent or "--").split("-")[1],
        result_id=job.result_id if has_result else None,
    )
