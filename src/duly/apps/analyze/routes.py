"""Analyses: at once if they are small, else as a job with partial results and a permalink."""

import asyncio
from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.apps import analyze
from duly.apps.analyze import AnalyzeRequest, Library, Summary
from duly.core.job import JobEvent
from duly.core.principal import Scope
from duly.core.states import Status
from duly.features.events.reader import JobEventReader, resume_after
from duly.features.events.routes import Accept, After, LastEventId
from duly.features.job_results.routes import ResultResponse, Seq, result_response, visible_result
from duly.features.job_submission.routes import IdempotencyKey, call_of, enqueued
from duly.features.jobs.models import Accepted, CancelRequest, CurrentJobStatus, JobRequest, JobStatus
from duly.features.jobs.responses import accepted, cancel_response, status_response, visible_job
from duly.features.jobs.routes import IfNoneMatch, Prefer
from duly.features.jobs.service import JobStatusReading
from duly.http import sse as streams
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_ROOM = "/analyze"
_SMALL = 32 * 1024
_BUDGET = 2.0


class AnalyzeEvent(BaseModel):
    """One fact of an analysis."""

    event_type: str = Field(description="As in `api.analyze.job.partial`.")
    job_id: UUID
    org_id: UUID
    status: Status
    event_seq: int
    occurred_at: datetime
    trace_id: str
    result_id: UUID | None


class AnalyzeEvents(BaseModel):
    """Some events in their order; `after` asks for those that follow."""

    events: list[AnalyzeEvent]
    after: int


def routes(service: Service) -> APIRouter:
    """What callers do with analyses."""
    api = APIRouter(prefix=_ROOM, tags=["analyze"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]

    @api.post(
        "",
        response_model=Summary,
        responses={**problem_responses(409, 413, 415), 202: {"model": Accepted, "description": "As a job."}},
    )
    async def submit(
        request: AnalyzeRequest,
        who: writes,
        idempotency_key: IdempotencyKey = None,
        prefer: Annotated[str, Header(description="`respond-async`: as a job, however small.")] = "",
    ) -> Response:
        """Analyze: small work at once, larger work as a job."""
        at_once = "respond-async" not in prefer and analyze.cost(request) <= _SMALL
        summary = await _at_once(service, who, request) if at_once else None
        if summary is not None:
            return json_response(summary)
        asked = JobRequest(job_type=analyze.JOB_TYPE, payload=request.model_dump(mode="json"))
        handle = await enqueued(service, who, call_of(service, asked, idempotency_key))
        return accepted(who, handle.job_id, None, replayed=not handle.created, prefix=_ROOM)

    @api.get(
        "/jobs/{job_id}",
        response_model=CurrentJobStatus,
        responses={**problem_responses(404), 304: {"description": "As you have it."}},
    )
    async def status(
        job_id: UUID, who: reads, prefer: Prefer = None, if_none_match: IfNoneMatch = None
    ) -> Response:
        """How far an analysis is, and where its latest result is."""
        seen = await visible_job(service, who, job_id, job_type=analyze.JOB_TYPE)
        return await status_response(service, who, seen, prefer, if_none_match, _ROOM)

    @api.get(
        "/jobs/{job_id}/events",
        response_model=AnalyzeEvents,
        responses={**problem_responses(404), 200: streams.stream_documentation("Its events in order.")},
    )
    async def events(
        job_id: UUID, who: reads, after: After = 0, last_event_id: LastEventId = None, accept: Accept = ""
    ) -> Response:
        """Its events in order, each once; as a stream, until it has ended, if that is what is accepted."""
        seen = await visible_job(service, who, job_id, job_type=analyze.JOB_TYPE)
        words = _Words(seen)
        reader = JobEventReader(service, who, seen.job, resume_after(after, last_event_id), words)
        if streams.MEDIA_TYPE in accept:
            return await reader.stream()
        found = [words(event) for event in await reader.next()]
        return json_response(AnalyzeEvents(events=found, after=reader.after))

    @api.get("/results/{result_id}", response_model=ResultResponse, responses=problem_responses(404))
    async def result(result_id: UUID, who: reads, seq: Seq = None) -> Response:
        """The latest snapshot of an analysis, partial or final, or one by its number."""
        found = await visible_result(service, who, result_id, seq, analyze.JOB_TYPE)
        return json_response(result_response(who, found, _ROOM))

    @api.post(
        "/jobs/{job_id}/cancel",
        status_code=202,
        response_model=JobStatus,
        responses={
            **problem_responses(404, 409, 413, 415),
            200: {"model": JobStatus, "description": "It has ended so."},
        },
    )
    async def cancel(job_id: UUID, who: writes, request: CancelRequest | None = None) -> Response:
        """Ask for the end of an analysis; asked again, the same. What it has found so far stays."""
        before = await visible_job(service, who, job_id, action="change", job_type=analyze.JOB_TYPE)
        return await cancel_response(service, who, before, (request or CancelRequest()).reason, _ROOM)

    return api


async def _at_once(service: Service, who: Requester, request: AnalyzeRequest) -> Summary | None:
    """The summary, if it does not take too long."""
    library = Library((await service.app.resources()).blobs, who.org_id)
    try:
        async with asyncio.timeout(_BUDGET):
            return await analyze.analyze_now(request, library)
    except TimeoutError:
        return None


class _Words:
    """Events in the words of analyses."""

    def __init__(self, seen: JobStatusReading) -> None:
        self._job = seen.job

    def __call__(self, event: JobEvent) -> AnalyzeEvent:
        has_result = event.event_type in ("job.partial", "job.completed")
        return AnalyzeEvent(
            event_type=f"api.analyze.{event.event_type}",
            job_id=event.job_id,
            org_id=self._job.org_id,
            status=event.status,
            event_seq=event.event_seq,
            occurred_at=event.occurred_at,
            trace_id=(self._job.traceparent or "--").split("-")[1],
            result_id=self._job.result_id if has_result else None,
        )
