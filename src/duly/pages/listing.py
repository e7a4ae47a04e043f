"""The page with the jobs of an org, by status and subject."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import Request
from starlette.responses import Response

from duly.core.states import Status
from duly.features.jobs.service import JobPage
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_PAGE_SIZE = 25
_MAX_EMPTY_PAGES = 10


async def page(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the newest jobs, or those after a cursor."""
    params = request.query_params
    status = Status(params["status"]) if params.get("status") in set(Status) else None
    subject = params.get("subject_id") or None
    after = params.get("after") or None
    found = await _visible_jobs(service, requester, status, subject, after)
    chosen = {"status": status or "", "subject_id": subject or ""}
    return pages.page(
        request,
        "jobs",
        statuses=list(Status),
        status=status,
        subject=subject or "",
        jobs=found.jobs,
        first=urlencode(chosen) if after else None,
        more=urlencode({**chosen, "after": found.after}) if found.after else None,
    )


async def _visible_jobs(
    service: Service, requester: Requester, status: Status | None, subject: str | None, after: str | None
) -> JobPage:
    """Return the jobs that the requester may see; pages without any are skipped, up to a limit."""
    if not await service.is_visible(requester, subject):
        return JobPage((), None)
    page = JobPage((), after)
    for _ in range(_MAX_EMPTY_PAGES):
        found = await service.jobs.list(
            requester.org_id, status=status, subject_id=subject, limit=_PAGE_SIZE, after=page.after
        )
        subjects = await service.visible_subjects(requester, [job.subject_id for job in found.jobs])
        page = JobPage(tuple(job for job in found.jobs if job.subject_id in subjects), found.after)
        if page.jobs or page.after is None:
            break
    return page
