"""Which jobs are asked for: by the address, or by what was typed into the search box."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast
from uuid import UUID

from duly.console.visit import Visit
from duly.core.errors import ContractError
from duly.features.jobs.filter import Filters
from duly.features.jobs.search_query import NAMES, PREFIXES, Query, filters, known, parse, write

_SHOWN_AS = {"fresh_active": "fresh"}
"""How freshness is shown elsewhere, and what it is called here."""


@dataclass(frozen=True)
class Asked:
    """The terms of a search, and the filters that they are."""

    terms: dict[str, str] = field(default_factory=dict)
    wanted: Filters = field(default_factory=Filters)
    text: str = ""
    """As it stands in the search box."""
    wrong: ContractError | None = None
    """Why it cannot be read."""

    def without(self, *names: str) -> dict[str, str]:
        """The terms but for these."""
        return {name: value for name, value in self.terms.items() if name not in names}


async def asked(visit: Visit) -> Asked:
    """What this visit asks for. What was typed wins over the rest of the address."""
    typed = visit.query.get("q", "").strip()
    try:
        found = parse(typed)
        terms = {**_terms(visit), **found.terms}
        if found.word is None:
            return _read(terms)
        return await _resolved(visit, Query(terms, found.word))
    except ContractError as error:
        return Asked(_terms(visit), text=typed or write(_terms(visit)), wrong=error)


def _terms(visit: Visit) -> dict[str, str]:
    """The terms in the address; what is none of them is for others."""
    given = {name: value.strip() for name, value in visit.query.items() if value.strip()}
    same = set(NAMES) | set(NAMES.values())
    return {
        known(name): _SHOWN_AS.get(value, value)
        for name, value in given.items()
        if name in same or any(name.startswith(one) and name != one for one in PREFIXES)
    }


def _read(terms: dict[str, str], **more: Any) -> Asked:
    return Asked(terms, cast(Filters, filters(terms) | more), write(terms))


async def _resolved(visit: Visit, query: Query) -> Asked:
    """A word alone is the id of a job, what it is about, or how its type begins."""
    terms, word = query.terms, query.word or ""
    job_id = _uuid(word)
    if job_id is not None:
        read = _read(terms, job_ids=await _ids(visit, job_id))
        return Asked({**terms, "q": word}, read.wanted, f"{read.text} {word}".strip())
    if await _is_subject(visit, word):
        return _read({**terms, "subject": word})
    return _read({**terms, "type": word if word.endswith("*") else f"{word}*"})


async def _ids(visit: Visit, job_id: UUID) -> list[str]:
    if not visit.everywhere:
        return [str(job_id)]
    whose = await visit.service.jobs.find(job_id)
    return [] if whose is None else [f"{whose}/{job_id}"]


async def _is_subject(visit: Visit, word: str) -> bool:
    if visit.everywhere:
        # No index finds it: it is one unless a job type begins so.
        return not any(job.name.startswith(word.rstrip("*")) for job in visit.service.app.registry)
    return bool((await visit.service.jobs.list(visit.org_id, subject_id=word, limit=1)).jobs)


def _uuid(word: str) -> UUID | None:
    try:
        return UUID(word)
    except ValueError:
        return None
