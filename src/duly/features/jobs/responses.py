"""Responses about a job that several routes share: accepted, status, canceled."""

from __future__ import annotations

import asyncio
from uuid import UUID

from starlette.responses import Response

from duly.core.states import Status
from duly.features.arguments import unknown_job
from duly.features.jobs.models import API_PREFIX, Accepted, current_job_status, job_status
from duly.http.requester import Requester
from duly.http.responses import etag_matches, json_response, preferred_wait
from duly.http.service import Service
from duly.jobs.status_batcher import JobStatusReading


def accepted(
    requester: Requester,
    job_id: UUID,
    subject_id: str | None,
    *,
    replayed: bool = False,
    prefix: str = API_PREFIX,
) -> Response:
    """Return 202 with the links of a job."""
    body = links(requester, job_id, subject_id, prefix)
    headers = {"location": body.status_url, "retry-after": "1"}
    if replayed:
        headers["idempotency-replayed"] = "true"
    return json_response(body, 202, headers)


def links(requester: Requester, job_id: UUID, subject_id: str | None, prefix: str = API_PREFIX) -> Accepted:
    """Return the links of an accepted job."""
    status_url = requester.link(f"{prefix}/jobs/{job_id}")
    return Accepted(
        job_id=job_id,
        subject_id=subject_id,
        status=Status.QUEUED,
        status_url=status_url,
        events_url=f"{status_url}/events",
    )


async def visible_job(
    service: Service,
    requester: Requester,
    job_id: UUID,
    *,
    action: str = "read",
    job_type: str | None = None,
) -> JobStatusReading:
    """Return a job that the requester may see, of the type that the route serves; else raise."""
    reading = await service.jobs.status(requester.org_id, job_id)
    if job_type not in (None, reading.job.job_type):
        raise unknown_job(job_id)
    await service.check_subject(requester, reading.job, action)
    return reading


async def status_response(
    service: Service,
    requester: Requester,
    reading: JobStatusReading,
    prefer: str | None,
    if_none_match: str | None,
    prefix: str = API_PREFIX,
) -> Response:
    """Return the status: now, or once it differs from the client's, or when the preferred wait is over."""
    wait = preferred_wait(prefer, service.options.wait_max)
    unchanged = if_none_match is None or etag_matches(if_none_match, _etag(reading))
    if wait and unchanged and not reading.job.status.terminal:
        reading = await _wait_for_change(service, reading, wait)
        await service.check_still_visible(requester, reading.job)
    headers = {
        "etag": _etag(reading),
        "cache-control": "private, no-cache",
        "vary": "authorization, cookie, prefer",
    }
    if wait:
        headers["preference-applied"] = f"wait={wait:g}"
    if not reading.job.status.terminal:
        headers["retry-after"] = "1"
    if if_none_match is not None and etag_matches(if_none_match, headers["etag"]):
        return Response(status_code=304, headers=headers)
    content = current_job_status(requester, reading, prefix)
    return Response(content, headers=headers, media_type="application/json")


async def cancel_response(
    service: Service, requester: Requester, before: JobStatusReading, reason: str, prefix: str = API_PREFIX
) -> Response:
    """Cancel a job: 200 if it is canceled, 202 if its worker was notified; 409 if it ended otherwise."""
    job = before.job
    if job.status is not Status.CANCELED:
        await service.jobs.cancel(requester.org_id, job.job_id, actor=requester.actor, reason=reason)
    after = await service.jobs.status(requester.org_id, job.job_id)
    canceled = after.job.status is Status.CANCELED
    return json_response(job_status(requester, after.job, after.freshness, prefix), 200 if canceled else 202)


def _etag(reading: JobStatusReading) -> str:
    """Return the tag of a state; weak, since the time of the evaluation is no change."""
    job = reading.job
    return f'W/"{reading.event_seq}-{job.attempt}-{job.updated_at.timestamp():f}-{reading.freshness.state}"'


async def _wait_for_change(service: Service, reading: JobStatusReading, wait: float) -> JobStatusReading:
    job = reading.job
    try:
        async with asyncio.timeout(wait):
            await service.status_watcher.wait_for_event(job.org_id, job.job_id, reading.event_seq)
    except TimeoutError:
        pass
    return await service.jobs.status(job.org_id, job.job_id)
