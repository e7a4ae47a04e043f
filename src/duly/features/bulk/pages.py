"""The page of a bulk action: its impact, and the form that starts it."""

from __future__ import annotations

from typing import cast
from uuid import UUID

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit
from duly.core.errors import MissingField, NotFound
from duly.core.principal import Scope
from duly.features.bulk.plan import Verb
from duly.features.jobs.filter import MAX_JOB_IDS, JobFilterKeywords
from duly.features.jobs.pages import JobSearch, read_search


async def page(visit: Visit) -> ConsolePage:
    """Show what the bulk action would change, and the form that starts it."""
    verb, search, filters = await _read_action(visit)
    impact = await visit.service.bulk.impact(_org(visit), verb, filters, actor=visit.actor)
    return visit.page(
        "bulk.html",
        title=visit.t(f"jobs.bulk.{verb}"),
        verb=verb,
        search=search,
        impact=impact,
        named=visit.query.get("scope") != "all",
        here=visit.link("/jobs/bulk", **_query(visit, search)),
        back=visit.link("/jobs", **search.terms),
    )


async def start(visit: Visit, form: Form) -> Response:
    """Start the bulk action and go to its job."""
    verb, _, filters = await _read_action(visit)
    rate = form.number("per_second") if form.get("per_second", "").strip() else None
    handle = await visit.service.bulk.start(
        _org(visit), verb, filters, actor=visit.actor, reason=form.reason, per_second=rate
    )
    return visit.done("jobs.bulk.started", to=f"/jobs/{handle.job_id}")


async def _read_action(visit: Visit) -> tuple[Verb, JobSearch, JobFilterKeywords]:
    """Return the verb, the search and the filters; raise if the visitor may not change all these jobs."""
    search = await read_search(visit)
    if search.error is not None:
        raise search.error
    try:
        verb = Verb(visit.query.get("verb", ""))
    except ValueError:
        raise NotFound("no such change") from None
    if visit.query.get("scope") == "all":
        await visit.service.check_everything(visit.requester, "change")
        return verb, search, search.filters
    return verb, search, await _selected_jobs(visit)


async def _selected_jobs(visit: Visit) -> JobFilterKeywords:
    """Return a filter of the selected jobs that the visitor may change."""
    keys = visit.request.query_params.getlist("job")
    if not keys:
        raise MissingField(visit.t("jobs.bulk.nothing"), field="job", fix=visit.t("jobs.bulk.nothing.fix"))
    if visit.all_orgs:
        return JobFilterKeywords(job_ids=keys)
    jobs = (await visit.service.jobs.list(visit.org_id, job_ids=keys, limit=MAX_JOB_IDS)).jobs
    visible = await visit.visible_subjects([job.subject_id for job in jobs], "change")
    return JobFilterKeywords(job_ids=[job.job_id for job in jobs if job.subject_id in visible])


def _org(visit: Visit) -> UUID | None:
    return None if visit.all_orgs else visit.org_id


def _query(visit: Visit, search: JobSearch) -> dict[str, object]:
    """Return the query of this page, for the form to come back to it."""
    selected = {"job": visit.request.query_params.getlist("job"), "scope": visit.query.get("scope")}
    return cast(dict[str, object], {**search.terms, **selected, "verb": visit.query.get("verb")})


ROUTES = (
    Show("/jobs/bulk", page, Scope.OPERATE, every=30.0),
    Act("/jobs/bulk", start, Scope.OPERATE, page),
)
