"""Responses about a job that several routes give: accepted, its status now or after a change, canceled."""

from __future__ import annotations

import asyncio
from uuid import UUID

from starlette.responses import Response

from duly.core.states import Status
from duly.features.jobs.models import API_PREFIX, Accepted, current_job_status, job_status
from duly.features.jobs.service import Glance
from duly.http.requester import Requester
from duly.http.responses import etag_matches, json_response, preferred_wait
from duly.http.service import Service, unknown_job


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
) -> Glance:
    """Return a job that the requester may see, of the type that the route serves; else raise."""
    found = await service.jobs.glance(requester.org_id, job_id)
    if job_type not in (None, found.job.job_type):
        raise unknown_job(job_id)
    await service.check_subject(requester, found.job, action)
    return found


async def status_response(
    service: Service,
    requester: Requester,
    found: Glance,
    prefer: str | None,
    if_none_match: str | None,
    prefix: str = API_PREFIX,
) -> Response:
    """Return the status: now, or once it differs from the client's, or when the preferred wait is over."""
    wait = preferred_wait(prefer, service.options.wait_max)
    unchanged = if_none_match is None or etag_matches(if_none_match, _etag(found))
    if wait and unchanged and not found.job.status.terminal:
        found = await _wait_for_change(service, found, wait)
        await service.check_still_visible(requester, found.job)
    headers = {
        "etag": _etag(found),
        "cache-control": "private, no-cache",
        "vary": "authorization, cookie, prefer",
    }
    if wait:
        headers["preference-applied"] = f"wait={wait:g}"
    if not found.job.status.terminal:
        headers["retry-after"] = "1"
    if if_none_match is not None and etag_matches(if_none_match, headers["etag"]):
        return Response(status_code=304, headers=headers)
    content = current_job_status(requester, found, prefix)
    return Response(content, headers=headers, media_type="application/json")


async def cancel_response(
    service: Service, requester: Requester, before: Glance, reason: str, prefix: str = API_PREFIX
) -> Response:
    """Cancel a job: 200 if it is canceled, 202 if its worker was notified; 409 if it ended otherwise."""
    job = before.job
    if job.status is not Status.CANCELED:
        await service.jobs.cancel(requester.org_id, job.job_id, actor=requester.actor, reason=reason)
    after = await service.jobs.glance(requester.org_id, job.job_id)
    canceled = after.job.status is Status.CANCELED
    return json_response(job_status(requester, after.job, after.freshness, prefix), 200 if canceled else 202)


def _etag(found: Glance) -> str:
    """Return the tag of a state; weak, since the time of the evaluation is no change."""
    job = found.job
    return f'W/"{found.event_seq}-{job.attempt}-{job.updated_at.timestamp():f}-{found.freshness.state}"'


async def _wait_for_change(service: Service, found: Glance, wait: float) -> Glance:
    job = found.job
    try:
        async with asyncio.timeout(wait):
            await service.status_watcher.news(job.org_id, job.job_id, found.event_seq)
    except TimeoutError:
        pass
    return await service.jobs.glance(job.org_id, job.job_id)
