"""The page of jobs: search, filter, select for bulk actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast
from uuid import UUID

from duly.console.routing import Show
from duly.console.visit import ConsolePage, Visit
from duly.core.errors import ContractError
from duly.core.freshness import Freshness
from duly.core.job import JobSnapshot
from duly.core.policy import QUEUES
from duly.core.principal import Scope
from duly.core.states import Outcome, Status
from duly.features.bulk.plan import Verb, applicable_verbs
from duly.features.jobs.filter import JobFilterKeywords
from duly.features.jobs.search_query import format_terms, is_term, parse_query, term_filters, term_name
from duly.features.jobs.service import JobPage
from duly.features.pagination import Count
from duly.http.options import EVERY_SUBJECT

_PAGE_SIZE = 50
_FRESHNESS_LABELS = {"fresh_active": "fresh"}
"""The labels of freshness elsewhere, and its names in filters."""


@dataclass(frozen=True)
class JobSearch:
    """The search of a visit: its terms and the filters that they set."""

    terms: dict[str, str] = field(default_factory=dict)
    filters: JobFilterKeywords = field(default_factory=JobFilterKeywords)
    text: str = ""
    """The text in the search box."""
    error: ContractError | None = None
    """The reason why the search is invalid."""

    def without(self, name: str) -> dict[str, str]:
        """Return the terms except one."""
        return {term: value for term, value in self.terms.items() if term != name}


class JobTableRow(NamedTuple):
    """A job in the table."""

    job: JobSnapshot
    href: str
    key: str
    """The value of its checkbox."""
    org_name: str
    org_href: str
    stale: bool

    @property
    def took(self) -> float | None:
        """The seconds from start to end."""
        job = self.job
        if job.started_at is None or job.finished_at is None:
            return None
        return (job.finished_at - job.started_at).total_seconds()


@dataclass(frozen=True)
class StatusTab:
    """The tab of a status, or of all."""

    status: str
    href: str
    here: bool
    count: Count | None


async def page(visit: Visit) -> ConsolePage:
    """Show a page of the jobs that match the search."""
    search = await read_search(visit)
    after = visit.query.get("after") or None
    jobs = JobPage((), None)
    if search.error is None:
        try:
            jobs = await _list(visit, search, after)
        except ContractError as error:
            search = replace(search, error=error)
    next_page = None if jobs.after is None else visit.link("/jobs", **{**search.terms, "after": jobs.after})
    return visit.page(
        "jobs.html",
        title=visit.t("jobs.title"),
        status=200 if search.error is None else 422,
        search=search,
        tabs=await _tabs(visit, search),
        rows=await _rows(visit, jobs.jobs),
        choices=_choices(visit, search, jobs.jobs),
        removable=[
            (name, value, visit.link("/jobs", **search.without(name)))
            for name, value in search.terms.items()
            if name != "status"
        ],
        verbs=_verbs(visit, search),
        older=next_page,
        newest=visit.link("/jobs", **search.terms) if after else None,
        short=jobs.after is not None and len(jobs.jobs) < _PAGE_SIZE,
    )


async def read_search(visit: Visit) -> JobSearch:
    """Return the search of a visit. The search box wins over the other terms of the query."""
    typed = visit.query.get("q", "").strip()
    try:
        query = parse_query(typed)
        terms = {**_query_terms(visit), **query.terms}
        return await _resolve_word(visit, terms, query.word) if query.word else _search(terms)
    except ContractError as error:
        terms = _query_terms(visit)
        return JobSearch(terms, text=typed or format_terms(terms), error=error)


def _query_terms(visit: Visit) -> dict[str, str]:
    values = {name: value.strip() for name, value in visit.query.items() if value.strip()}
    return {
        term_name(name): _FRESHNESS_LABELS.get(value, value)
        for name, value in values.items()
        if is_term(name)
    }


def _search(terms: dict[str, str], **more: Any) -> JobSearch:
    return JobSearch(terms, cast(JobFilterKeywords, term_filters(terms) | more), format_terms(terms))


async def _resolve_word(visit: Visit, terms: dict[str, str], word: str) -> JobSearch:
    """Resolve a word alone: the id of a job, a subject, or the prefix of a job type."""
    try:
        job_id = UUID(word)
    except ValueError:
        if await _is_subject(visit, word):
            return _search({**terms, "subject": word})
        return _search({**terms, "type": word if word.endswith("*") else f"{word}*"})
    search = _search(terms, job_ids=await _job_ids(visit, job_id))
    return replace(search, terms={**terms, "q": word}, text=f"{search.text} {word}".strip())


async def _job_ids(visit: Visit, job_id: UUID) -> list[str]:
    if not visit.all_orgs:
        return [str(job_id)]
    org_id = await visit.service.jobs.find(job_id)
    return [] if org_id is None else [f"{org_id}/{job_id}"]


async def _is_subject(visit: Visit, word: str) -> bool:
    if visit.all_orgs:
        # No index finds a subject: assume one unless a job type begins with the word.
        return not any(job.name.startswith(word.rstrip("*")) for job in visit.service.app.registry)
    return bool((await visit.service.jobs.list(visit.org_id, subject_id=word, limit=1)).jobs)


def _verbs(visit: Visit, search: JobSearch) -> list[Verb]:
    if search.error is not None or not visit.may(Scope.OPERATE):
        return []
    return applicable_verbs(search.terms.get("status"))


async def _list(visit: Visit, search: JobSearch, after: str | None) -> JobPage:
    jobs = visit.service.jobs
    if visit.all_orgs:
        return await jobs.list_all_orgs(limit=_PAGE_SIZE, after=after, **search.filters)
    if not await visit.is_visible(search.filters.get("subject_id")):
        return JobPage((), None)
    page = await jobs.list(visit.org_id, limit=_PAGE_SIZE, after=after, **search.filters)
    visible = await visit.visible_subjects([job.subject_id for job in page.jobs])
    return JobPage(tuple(job for job in page.jobs if job.subject_id in visible), page.after)


async def _rows(visit: Visit, jobs: Sequence[JobSnapshot]) -> list[JobTableRow]:
    active = [job for job in jobs if not job.status.terminal]
    freshness = await visit.service.jobs.freshness(None if visit.all_orgs else visit.org_id, active)
    stale = {job_id for job_id, one in freshness.items() if one.state is Freshness.LIKELY_STALE}
    names: Mapping[UUID, str] = {}
    if visit.all_orgs:
        names = await visit.service.orgs.names({job.org_id for job in jobs})
    return [
        JobTableRow(
            job,
            visit.link(f"/jobs/{job.job_id}", **({"org": job.org_id} if visit.all_orgs else {})),
            f"{job.org_id}/{job.job_id}" if visit.all_orgs else str(job.job_id),
            names.get(job.org_id) or str(job.org_id),
            visit.link("/jobs", org=job.org_id),
            job.job_id in stale,
        )
        for job in jobs
    ]


async def _tabs(visit: Visit, search: JobSearch) -> list[StatusTab]:
    """Return a tab per status; with counts if an index serves them and the visitor may see all subjects."""
    others, current = search.without("status"), search.terms.get("status")
    counts: Mapping[Status, Count] = {}
    if not others and await visit.is_visible(EVERY_SUBJECT):
        counts = await visit.service.jobs.count_by_status(None if visit.all_orgs else visit.org_id)
    return [
        StatusTab("", visit.link("/jobs", **others), current is None, None),
        *(
            StatusTab(
                status,
                visit.link("/jobs", **{**others, "status": status}),
                current == status,
                counts.get(status),
            )
            for status in Status
        ),
    ]


def _choices(visit: Visit, search: JobSearch, jobs: Sequence[JobSnapshot]) -> dict[str, list[str]]:
    """Return the values to choose from by term, with the current one."""
    registry = visit.service.app.registry
    choices = {
        "outcome": [one.value for one in Outcome if one is not Outcome.PENDING],
        "queue": sorted({*QUEUES, *(job.policy.queue for job in registry), *(job.queue for job in jobs)}),
        "type": sorted({*(job.name for job in registry), *(job.job_type for job in jobs)}),
        "freshness": [one.value for one in Freshness if one is not Freshness.TERMINAL],
    }
    return {
        name: values if search.terms.get(name) in (None, *values) else [search.terms[name], *values]
        for name, values in choices.items()
    }


ROUTES = (Show("/jobs", page, nav="jobs.title", every=15.0),)
