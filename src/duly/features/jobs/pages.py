"""Jobs: found by whatever is known of them, and changed one by one or all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit
from duly.core.errors import ContractError
from duly.core.freshness import Freshness
from duly.core.job import JobSnapshot
from duly.core.policy import QUEUES
from duly.core.principal import Scope
from duly.core.states import Outcome, Status
from duly.features.bulk import pages as jobs_bulk
from duly.features.bulk.plan import Verb
from duly.features.jobs.page_filter import Asked, asked
from duly.features.jobs.service import JobPage
from duly.features.pagination import Count
from duly.http.options import EVERY_SUBJECT

_PAGE = 50
_FRESH = [one.value for one in Freshness if one is not Freshness.TERMINAL]


class Row(NamedTuple):
    """A job as the table shows it."""

    job: JobSnapshot
    href: str
    key: str
    """By which it is selected."""
    org_name: str
    org_href: str
    stale: bool

    @property
    def took(self) -> float | None:
        """The seconds from its start to its end."""
        job = self.job
        return None if not (job.started_at and job.finished_at) else _seconds(job.started_at, job.finished_at)


@dataclass(frozen=True)
class Tab:
    """A status that can be chosen."""

    status: str
    href: str
    here: bool
    count: Count | None


async def page(visit: Visit) -> Page:
    """The jobs that are asked for, some at a time."""
    query = await asked(visit)
    after = visit.query.get("after") or None
    found = JobPage((), None)
    if query.wrong is None:
        try:
            found = await _list(visit, query, after)
        except ContractError as error:
            query = Asked(query.terms, query.wanted, query.text, error)
    rows = await _rows(visit, found.jobs)
    return visit.page(
        "jobs.html",
        title=visit.t("jobs.title"),
        status=200 if query.wrong is None else 422,
        query=query,
        tabs=await _tabs(visit, query),
        rows=rows,
        choices=_choices(visit, query, found.jobs),
        removable=[
            (name, value, visit.link("/jobs", **query.without(name)))
            for name, value in query.terms.items()
            if name != "status"
        ],
        verbs=_verbs(visit, query),
        older=_further(visit, query, found.after),
        newest=visit.link("/jobs", **query.terms) if after else None,
        short=found.after is not None and len(found.jobs) < _PAGE,
    )


def _verbs(visit: Visit, query: Asked) -> list[Verb]:
    if query.wrong is not None or not visit.may(Scope.OPERATE):
        return []
    return jobs_bulk.offered(query.terms.get("status"))


async def _list(visit: Visit, query: Asked, after: str | None) -> JobPage:
    jobs = visit.service.jobs
    if visit.everywhere:
        return await jobs.list_everywhere(limit=_PAGE, after=after, **query.wanted)
    if not await visit.sees(query.wanted.get("subject_id")):
        return JobPage((), None)
    found = await jobs.list(visit.org_id, limit=_PAGE, after=after, **query.wanted)
    theirs = await visit.seen([job.subject_id for job in found.jobs])
    return JobPage(tuple(job for job in found.jobs if job.subject_id in theirs), found.after)


async def _rows(visit: Visit, found: Sequence[JobSnapshot]) -> list[Row]:
    active = [job for job in found if not job.status.terminal]
    fresh = await visit.service.jobs.freshness(None if visit.everywhere else visit.org_id, active)
    stale = {job_id for job_id, one in fresh.items() if one.state is Freshness.LIKELY_STALE}
    names: Mapping[UUID, str] = {}
    if visit.everywhere:
        names = await visit.service.orgs.names({job.org_id for job in found})
    return [_row(visit, job, names.get(job.org_id, ""), stale) for job in found]


def _row(visit: Visit, job: JobSnapshot, org_name: str, stale: set[UUID]) -> Row:
    whose = {"org": job.org_id} if visit.everywhere else {}
    return Row(
        job,
        visit.link(f"/jobs/{job.job_id}", **whose),
        f"{job.org_id}/{job.job_id}" if visit.everywhere else str(job.job_id),
        org_name or str(job.org_id),
        visit.link("/jobs", org=job.org_id),
        job.job_id in stale,
    )


async def _tabs(visit: Visit, query: Asked) -> list[Tab]:
    """Every status; with how many there are where an index tells it, and who looks may see them all."""
    counts: Mapping[Status, Count] = {}
    if not query.without("status") and await visit.sees(EVERY_SUBJECT):
        counts = await visit.service.jobs.count_by_status(None if visit.everywhere else visit.org_id)
    others, now = query.without("status"), query.terms.get("status")
    return [
        Tab("", visit.link("/jobs", **others), now is None, None),
        *(
            Tab(one, visit.link("/jobs", **{**others, "status": one}), now == one, counts.get(one))
            for one in Status
        ),
    ]


def _choices(visit: Visit, query: Asked, found: Sequence[JobSnapshot]) -> dict[str, list[str]]:
    """What can be chosen from, by the name of its term; also what is chosen already."""
    registry = visit.service.app.registry
    known = {
        "outcome": [one.value for one in Outcome if one is not Outcome.PENDING],
        "queue": sorted({*QUEUES, *(job.policy.queue for job in registry), *(job.queue for job in found)}),
        "type": sorted({*(job.name for job in registry), *(job.job_type for job in found)}),
        "freshness": _FRESH,
    }
    chosen = query.terms
    return {
        name: values if chosen.get(name) in (None, *values) else [chosen[name], *values]
        for name, values in known.items()
    }


def _further(visit: Visit, query: Asked, after: str | None) -> str | None:
    return None if after is None else visit.link("/jobs", **{**query.terms, "after": after})


def _seconds(since: datetime, until: datetime) -> float:
    return (until - since).total_seconds()


ROUTES = (
    Show("/jobs", page, nav="jobs.title", every=15.0),
    Show("/jobs/bulk", jobs_bulk.page, Scope.OPERATE, every=30.0),
    Act("/jobs/bulk", jobs_bulk.start, Scope.OPERATE, jobs_bulk.page),
)
