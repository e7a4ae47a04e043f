"""One change for many jobs: what it would do, then the reason, then the job that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast
from uuid import UUID

from starlette.responses import Response

from duly.console.form import Form
from duly.console.visit import Page, Visit
from duly.core.errors import MissingField, NotFound
from duly.core.states import Status
from duly.features.bulk.plan import Verb
from duly.features.bulk.service import Impact
from duly.features.jobs.filter import Filters
from duly.features.jobs.page_filter import Asked, asked
from duly.features.pagination import Count


@dataclass(frozen=True)
class Left:
    """Jobs that match and are left alone, and the text that says why."""

    status: Status
    count: Count
    why: str


def offered(status: str | None) -> list[Verb]:
    """What can be done to jobs of this status, or of all."""
    every = [Verb.CANCEL, Verb.REPLAY] if status is None else list(Verb)
    return [verb for verb in every if status is None or verb.touches(Status(status))]


async def page(visit: Visit) -> Page:
    """What it would do, and the form that has it done."""
    verb, query, wanted = await _wanted(visit)
    impact = await visit.service.bulk.impact(_whose(visit), verb, wanted, actor=visit.actor)
    return visit.page(
        "bulk.html",
        title=visit.t(f"jobs.bulk.{verb}"),
        verb=verb,
        query=query,
        impact=impact,
        left=_left(impact),
        named=visit.query.get("scope") != "all",
        here=visit.link("/jobs/bulk", **_address(visit, query)),
        back=visit.link("/jobs", **query.terms),
    )


async def start(visit: Visit, form: Form) -> Response:
    """Have it done: to those that are there by now, as a job that can be watched."""
    verb, _, wanted = await _wanted(visit)
    pace = form.number("per_second") if form.get("per_second", "").strip() else None
    handle = await visit.service.bulk.start(
        _whose(visit), verb, wanted, actor=visit.actor, reason=form.reason, per_second=pace
    )
    return visit.done("jobs.bulk.started", to=f"/jobs/{handle.job_id}")


async def _wanted(visit: Visit) -> tuple[Verb, Asked, Filters]:
    """What is to be done, and to which jobs; only if they may do it to all of them."""
    query = await asked(visit)
    if query.wrong is not None:
        raise query.wrong
    try:
        verb = Verb(visit.query.get("verb", ""))
    except ValueError:
        raise NotFound("no such change") from None
    if visit.query.get("scope") == "all":
        await visit.service.check_everything(visit.caller, "change")
        return verb, query, query.wanted
    return verb, query, await _named(visit)


async def _named(visit: Visit) -> Filters:
    """Those that were selected, as far as they may change them."""
    keys = visit.request.query_params.getlist("job")
    if not keys:
        raise MissingField(visit.t("jobs.bulk.nothing"), field="job", fix=visit.t("jobs.bulk.nothing.fix"))
    if visit.everywhere:
        return Filters(job_ids=keys)
    found = (await visit.service.jobs.list(visit.org_id, job_ids=keys, limit=500)).jobs
    theirs = await visit.seen([job.subject_id for job in found], "change")
    return Filters(job_ids=[job.job_id for job in found if job.subject_id in theirs])


def _whose(visit: Visit) -> UUID | None:
    return None if visit.everywhere else visit.org_id


def _address(visit: Visit, query: Asked) -> dict[str, object]:
    """Where this page is, to be sent there again."""
    named = {"job": visit.request.query_params.getlist("job"), "scope": visit.query.get("scope")}
    return cast(dict[str, object], {**query.terms, **named, "verb": visit.query.get("verb")})


def _left(impact: Impact) -> list[Left]:
    return [
        Left(status, count, f"jobs.bulk.left.{impact.verb}.{'ended' if status.terminal else 'active'}")
        for status, count in impact.left.items()
    ]
