"""The page of a job: what became of it and why, and its actions."""

from __future__ import annotations

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit, as_id
from duly.core.errors import NotFound
from duly.core.job import JobSnapshot
from duly.core.principal import Scope
from duly.core.redaction import redact_payload
from duly.features.job_detail import page_parts as parts
from duly.features.job_detail.service import FullJobDetail
from duly.features.job_detail.timeline_drawing import draw_timeline
from duly.features.system_jobs import may_change

_LARGE_PAYLOAD = {"…": "…"}


async def page(visit: Visit) -> ConsolePage:
    """Show a job."""
    job_id = as_id(visit.params["job_id"])
    detail = await visit.service.jobs.full_detail(
        visit.org_id,
        job_id,
        compared=_compared_results(visit),
        for_tenant=not visit.platform,
        language=visit.language,
    )
    await check_visible(visit, detail.job.subject_id)
    payload = None if detail.payload is None else redact_payload(detail.payload)
    copied = _LARGE_PAYLOAD if payload is None else payload
    visible = await visit.visible_subjects([relative.subject_id for relative in detail.relatives])
    return visit.page(
        "job.html",
        title=f"{detail.job.job_type} {str(job_id)[:8]}",
        detail=detail,
        job=detail.job,
        timeline=draw_timeline(detail.timeline, visit.t, name_workers=visit.platform),
        attempts=parts.attempt_views(visit, detail),
        events=parts.event_views(visit, detail),
        evidence=parts.reconciliation_evidence,
        reconciliation_message=parts.reconciliation_message,
        compared=parts.compare_results(visit, detail.record.partial_results),
        payload=None if payload is None else parts.pretty_json(payload),
        relatives=[relative for relative in detail.relatives if relative.subject_id in visible],
        trace_id=_trace_id(detail.job),
        curl=parts.curl_command(visit.requester.base, detail.job, copied),
        command=parts.cli_command(visit.org_id, detail.job, copied),
        can=_allowed_actions(visit, detail),
    )


async def pulse(visit: Visit) -> object:
    """Return the change marker of the job: the page is rendered again when it changes."""
    marker = await visit.service.jobs.change_marker(visit.org_id, as_id(visit.params["job_id"]))
    await check_visible(visit, marker.subject_id)
    return marker


async def check_visible(visit: Visit, subject_id: str | None, action: str = "read") -> None:
    """Raise as for an unknown job if the visitor may not see jobs of this subject."""
    if not await visit.is_visible(subject_id, action):
        raise NotFound("no such job")


async def changeable_job(visit: Visit) -> JobSnapshot:
    """Return the job of the page if the visitor may change it."""
    job = (await visit.service.jobs.status(visit.org_id, as_id(visit.params["job_id"]))).job
    await check_visible(visit, job.subject_id, "change")
    return job


async def cancel(visit: Visit, form: Form) -> Response:
    """Cancel the job."""
    job_id = (await changeable_job(visit)).job_id
    status = await visit.service.jobs.cancel(visit.org_id, job_id, actor=visit.actor, reason=form.reason)
    return visit.done("job.canceled" if status.terminal else "job.cancel_requested", to=f"/jobs/{job_id}")


async def replay(visit: Visit, form: Form) -> Response:
    """Run the job again as a new job."""
    job_id = (await changeable_job(visit)).job_id
    handle = await visit.service.dead_letters.rerun(visit.org_id, job_id, visit.actor, form.reason)
    return visit.done("job.replayed", to=f"/jobs/{handle.job_id}")


async def discard(visit: Visit, form: Form) -> Response:
    """Discard the dead letter of the job."""
    job_id = (await changeable_job(visit)).job_id
    await visit.service.dead_letters.discard(visit.org_id, job_id, visit.actor, form.reason)
    return visit.done("job.discarded", to=f"/jobs/{job_id}")


def _allowed_actions(visit: Visit, detail: FullJobDetail) -> set[str]:
    """Return the actions that the status of the job and the scopes of the visitor allow."""
    job = detail.job
    if not may_change(visit.actor, job.job_type):
        return set()
    actions = set()
    if not job.status.terminal and job.cancel_requested_at is None and visit.may(Scope.WRITE):
        actions.add("cancel")
    if job.status.terminal and visit.may(Scope.OPERATE):
        actions |= {"replay", "fix"}
        dead_letter = detail.record.dead_letter
        if dead_letter is not None and dead_letter.resolution is None:
            actions.add("discard")
    return actions


def _compared_results(visit: Visit) -> list[int]:
    """Return the numbers of the partial results to compare; none if the query has no two numbers."""
    numbers = [visit.query.get("a", ""), visit.query.get("b", "")]
    if not all(text.isascii() and text.isdigit() and len(text) < 10 for text in numbers):
        return []
    return sorted({int(text) for text in numbers})


def _trace_id(job: JobSnapshot) -> str | None:
    fields = (job.traceparent or "").split("-")
    return fields[1] if len(fields) == 4 else None


ROUTES = (
    Show("/jobs/{job_id}", page, pulse=pulse, every=2.0),
    Act("/jobs/{job_id}/cancel", cancel, Scope.WRITE, page),
    Act("/jobs/{job_id}/replay", replay, Scope.OPERATE, page),
    Act("/jobs/{job_id}/discard", discard, Scope.OPERATE, page),
)
