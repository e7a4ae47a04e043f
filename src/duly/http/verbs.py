"""What is done with one job, whichever route it is asked by."""

from __future__ import annotations

import asyncio
from uuid import UUID

from starlette.responses import Response

from duly.control.jobs import Glance
from duly.http.answers import as_json, etag, matches, preferred_wait
from duly.http.caller import Caller
from duly.http.service import Service, unknown_job
from duly.http.shapes import ROOM, shown, shown_now
from duly.model.states import Status


async def look(
    service: Service, who: Caller, job_id: UUID, *, action: str = "read", job_type: str | None = None
) -> Glance:
    """The job, if it is the caller's to see, and of the type that the route is about."""
    seen = await service.jobs.glance(who.org_id, job_id)
    if job_type not in (None, seen.job.job_type):
        raise unknown_job(job_id)
    await service.check_subject(who, seen.job, action)
    return seen


async def polled(
    service: Service, who: Caller, seen: Glance, prefer: str | None, known: str | None, room: str = ROOM
) -> Response:
    """Its status: now, or when it is another than the known one, or when the caller's time is over."""
    wait = preferred_wait(prefer, service.options.wait_max)
    same = known is None or matches(known, etag(seen))
    if wait and same and not seen.job.status.terminal:
        seen = await _news(service, seen, wait)
        await service.check_still(who, seen.job)
    headers = {
        "etag": etag(seen),
        "cache-control": "private, no-cache",
        "vary": "authorization, cookie, prefer",
    }
    if wait:
        headers["preference-applied"] = f"wait={wait:g}"
    if not seen.job.status.terminal:
        headers["retry-after"] = "1"
    if known is not None and matches(known, headers["etag"]):
        return Response(status_code=304, headers=headers)
    return Response(shown_now(who, seen, room), headers=headers, media_type="application/json")


async def _news(service: Service, seen: Glance, wait: float) -> Glance:
    job = seen.job
    try:
        async with asyncio.timeout(wait):
            await service.watch.news(job.org_id, job.job_id, seen.event_seq)
    except TimeoutError:
        pass
    return await service.jobs.glance(job.org_id, job.job_id)


async def canceled(service: Service, who: Caller, before: Glance, reason: str, room: str = ROOM) -> Response:
    """200 if it is canceled, 202 if its worker was asked; 409 if it has ended otherwise."""
    job = before.job
    if job.status is not Status.CANCELED:
        await service.jobs.cancel(who.org_id, job.job_id, actor=who.actor, reason=reason)
    seen = await service.jobs.glance(who.org_id, job.job_id)
    ended = seen.job.status is Status.CANCELED
    return as_json(shown(who, seen.job, seen.freshness, room), 200 if ended else 202)
