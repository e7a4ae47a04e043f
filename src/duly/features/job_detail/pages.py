"""One job: what became of it and why, and what can be done about it."""

from __future__ import annotations

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit, as_id
from duly.core.errors import NotFound
from duly.core.job import JobSnapshot
from duly.core.principal import Scope
from duly.core.redaction import redact_payload
from duly.features.job_detail import page_parts as parts
from duly.features.job_detail.resubmit_commands import command, curl
from duly.features.job_detail.service import JobStory
from duly.features.job_detail.timeline_drawing import picture
from duly.features.system_jobs import may_change

_LARGE = {"…": "…"}


async def page(visit: Visit) -> Page:
    """The whole story of a job."""
    job_id = as_id(visit.params["job_id"])
    story = await visit.service.jobs.story(
        visit.org_id,
        job_id,
        compared=_compared(visit),
        outside=not visit.platform,
        language=visit.language,
    )
    await check_seen(visit, story.job)
    shown = None if story.payload is None else redact_payload(story.payload)
    copied = _LARGE if shown is None else shown
    open_to_them = await visit.seen([one.subject_id for one in story.relatives])
    return visit.page(
        "job.html",
        title=f"{story.job.job_type} {str(job_id)[:8]}",
        story=story,
        job=story.job,
        picture=picture(story.waterfall, visit.t, name_workers=visit.platform),
        attempts=parts.attempts(visit, story),
        events=parts.events(visit, story),
        evidence=parts.evidence,
        said=parts.said,
        compared=parts.compared(visit, story.snapshots),
        payload=None if shown is None else parts.pretty(shown),
        relatives=[one for one in story.relatives if one.subject_id in open_to_them],
        trace_id=_trace(story.job),
        curl=curl(visit.caller.base, story.job, copied),
        command=command(visit.org_id, story.job, copied),
        can=_can(visit, story),
    )


async def pulse(visit: Visit) -> object:
    """Every change of a job is an event of its own, and what it logs has numbers."""
    beat = await visit.service.jobs.beat(visit.org_id, as_id(visit.params["job_id"]))
    if not await visit.sees(beat.subject_id):
        raise NotFound("no such job")
    return beat


async def check_seen(visit: Visit, job: JobSnapshot, action: str = "read") -> None:
    """Raise as for an unknown job unless they may see what it is about."""
    if not await visit.sees(job.subject_id, action):
        raise NotFound("no such job")


async def to_change(visit: Visit) -> JobSnapshot:
    """The job, if they may change what becomes of it."""
    job = (await visit.service.jobs.glance(visit.org_id, as_id(visit.params["job_id"]))).job
    await check_seen(visit, job, "change")
    return job


async def cancel(visit: Visit, form: Form) -> Response:
    """Ask for its end."""
    job_id = (await to_change(visit)).job_id
    status = await visit.service.jobs.cancel(visit.org_id, job_id, actor=visit.actor, reason=form.reason)
    return visit.done("job.canceled" if status.terminal else "job.cancel_requested", to=f"/jobs/{job_id}")


async def replay(visit: Visit, form: Form) -> Response:
    """Do it again, as a new job."""
    job_id = (await to_change(visit)).job_id
    handle = await visit.service.dead_letters.rerun(visit.org_id, job_id, visit.actor, form.reason)
    return visit.done("job.replayed", to=f"/jobs/{handle.job_id}")


async def discard(visit: Visit, form: Form) -> Response:
    """Take its letter out of the box."""
    job_id = (await to_change(visit)).job_id
    await visit.service.dead_letters.discard(visit.org_id, job_id, visit.actor, form.reason)
    return visit.done("job.discarded", to=f"/jobs/{job_id}")


def _can(visit: Visit, story: JobStory) -> set[str]:
    """What they may do about it, as it is now."""
    job = story.job
    if not may_change(visit.actor, job.job_type):
        return set()
    found = set()
    if not job.status.terminal and job.cancel_requested_at is None and visit.may(Scope.WRITE):
        found.add("cancel")
    if job.status.terminal and visit.may(Scope.OPERATE):
        found |= {"replay", "fix"}
        if story.letter is not None and story.letter.resolution is None:
            found.add("discard")
    return found


def _compared(visit: Visit) -> list[int]:
    """The numbers of the partial results to be compared; none if that is not said, or no number."""
    given = [visit.query.get("a", ""), visit.query.get("b", "")]
    if not all(one.isascii() and one.isdigit() and len(one) < 10 for one in given):
        return []
    return sorted({int(one) for one in given})


def _trace(job: JobSnapshot) -> str | None:
    pieces = (job.traceparent or "").split("-")
    return pieces[1] if len(pieces) == 4 else None


ROUTES = (
    Show("/jobs/{job_id}", page, pulse=pulse, every=2.0),
    Act("/jobs/{job_id}/cancel", cancel, Scope.WRITE, page),
    Act("/jobs/{job_id}/replay", replay, Scope.OPERATE, page),
    Act("/jobs/{job_id}/discard", discard, Scope.OPERATE, page),
)
