"""The page with the jobs of an org: plain, by status, a page at a time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from urllib.parse import urlencode

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.control.jobs import JobPage
from duly.http.caller import Caller
from duly.http.pages.render import Pages, fill, language_of
from duly.http.pages.texts import texts
from duly.http.service import Service
from duly.model.job import JobSnapshot
from duly.model.states import Status

_AT_A_TIME = 25
_LOOKS = 10


async def page(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """The newest jobs, or those that follow."""
    language, base = language_of(request), service.path(request)
    wanted = request.query_params.get("status") or ""
    status = Status(wanted) if wanted in set(Status) else None
    subject = request.query_params.get("subject_id") or None
    after = request.query_params.get("after") or None
    seen = await _seen(service, who, status, subject, after)
    none = "jobs_on.html" if seen.after else "jobs_none.html"
    chosen = {"status": status or "", "subject_id": subject or ""}
    more = urlencode({**chosen, "after": seen.after})
    return pages.page(
        request,
        "jobs",
        options=_options(language, status),
        subject=subject or "",
        table=table(language, base, seen.jobs) if seen.jobs else fill(none, language, base=base),
        more=fill("jobs_more.html", language, query=more) if seen.after else Markup(),
        back=fill("jobs_first.html", language, query=urlencode(chosen)) if after else Markup(),
    )


async def _seen(
    service: Service, who: Caller, status: Status | None, subject: str | None, after: str | None
) -> JobPage:
    """What they may see; a page of nothing but others' jobs is passed over, so many times and no more."""
    if not await service.sees(who, subject):
        return JobPage((), None)
    page = JobPage((), after)
    for _ in range(_LOOKS):
        found = await service.jobs.list(
            who.org_id, status=status, subject_id=subject, limit=_AT_A_TIME, after=page.after
        )
        open_to_them = await service.seen(who, [job.subject_id for job in found.jobs])
        seen = [job for job in found.jobs if job.subject_id in open_to_them]
        page = JobPage(tuple(seen), found.after)
        if page.jobs or page.after is None:
            break
    return page


def table(language: str, base: str, jobs: Sequence[JobSnapshot]) -> Markup:
    """Jobs as rows."""
    rows = Markup().join(_row(language, base, job) for job in jobs)
    return fill("jobs_table.html", language, rows=rows)


def _row(language: str, base: str, job: JobSnapshot) -> Markup:
    said = texts(language)
    return fill(
        "jobs_row.html",
        language,
        base=base,
        job_id=job.job_id,
        job_type=job.job_type,
        subject=job.subject_id or "",
        status=job.status,
        word=said[f"status.{job.status}"],
        percent=_percent(job),
        created=job.created_at.isoformat(),
        created_text=_plain(job.created_at),
    )


def _options(language: str, status: Status | None) -> Markup:
    said = texts(language)
    options = [
        fill(
            "option.html",
            language,
            value=one,
            word=said[f"status.{one}"],
            chosen=Markup("selected") if one is status else "",
        )
        for one in Status
    ]
    return Markup().join(options)


def _percent(job: JobSnapshot) -> int:
    """In whole percent, as on the job's own page: 100 means that it is done."""
    return 100 if job.status is Status.COMPLETED else min(99, int(job.progress_percent))


def _plain(at: datetime) -> str:
    """For those without scripts; the others see their own time."""
    return f"{at:%Y-%m-%d %H:%M} UTC"
