"""Which passages are looked at: enough to have the best among them, few enough to be quick."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duly.apps.documents.search.query import Clause, Query
from duly.apps.documents.search.query_terms import Term, Terms

_LOOKS = 3600
"""Words times passages: so many are compared for rare words, and once more for common ones."""
_FEWEST, _MOST = 250, 600
"""Passages, whatever the words."""
_WIDER = 8
"""So many times more where a filter may drop most of them."""
_ENOUGH = 100
_WALKED = 3000
"""Entries of the index that are read to find those that have several common words."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Queries of the index, as `documents.find_passages` takes them."""

    any: str | None
    all: str | None
    wide: str | None
    whole: str
    terms: list[str]
    weights: list[float]
    most: int
    """Passages to look at."""


def plan(query: Query, terms: Terms) -> Plan | None:
    """How to look for it; none if nothing can have it."""
    scored = sorted(terms.found.values(), key=lambda term: (term.df, term.lexeme))
    lexemes = [_quoted(terms.tag, term.lexeme) for term in scored]
    weights = [terms.idf(term) for term in scored]
    if query.groups is not None:
        wanted = _operators(query.groups, terms)
        return Plan(wanted, None, wanted, wanted, lexemes, weights, _MOST) if wanted else None
    if not scored:
        return None
    most = max(_FEWEST, min(_MOST, _LOOKS // len(scored)))
    few, rest = _bounded(scored, terms, most)
    wide, _ = _bounded(scored, terms, _WIDER * most)
    return Plan(few, _together(rest, terms), wide, " | ".join(lexemes), lexemes, weights, most)


def _bounded(scored: Sequence[Term], terms: Terms, most: int) -> tuple[str | None, list[Term]]:
    """Rare words first: all passages that have them; of common ones those that have them often. And the rest.

    Common words are left out where they cannot outweigh a rare one, and the rare ones fill a few pages.
    """
    chosen: list[str] = []
    rest: list[Term] = []
    seen, best = 0, 0.0
    for term in scored:
        if seen + term.df <= most:
            chosen.append(_quoted(terms.tag, term.lexeme))
            seen += term.df
            best = max(best, terms.idf(term))
        else:
            rest.append(term)
    if seen >= _ENOUGH and sum(map(terms.idf, rest)) < best:
        return " | ".join(chosen), []
    for term in rest:
        for mark, count in (("+2", term.df2), ("+4", term.df4)):
            if 0 < count <= most - seen:
                chosen.append(_quoted(terms.tag, term.lexeme, mark))
                seen += count
                break
    return " | ".join(chosen) or None, rest


def _together(common: Sequence[Term], terms: Terms) -> str | None:
    """Passages that have all the common words, or the one that there is."""
    words: dict[int, list[Term]] = {}
    for term in common:
        words.setdefault(term.place, []).append(term)
    sides = sorted(words.values(), key=lambda side: sum(term.df for term in side))
    if not sides:
        return None
    mark = "+2" if len(sides) > 1 and sum(term.df for term in sides[0]) > _WALKED else ""
    said = [
        _either(_quoted(terms.tag, term.lexeme, mark if side is sides[0] else "") for term in side)
        for side in sides
    ]
    return " & ".join(said)


def _operators(groups: Iterable[Sequence[Clause]], terms: Terms) -> str | None:
    """One of the groups, all of its clauses; words that say nothing are left out."""
    said = [" & ".join(filter(None, (_clause(clause, terms) for clause in group))) for group in groups]
    return _either(part for part in said if part) if any(said) else None


def _clause(clause: Clause, terms: Terms) -> str | None:
    said, gap = "", 1
    for place in clause.places:
        has = terms.of(place)
        if place in terms.stops or (place in terms.doubtful and (len(clause.places) > 1 or not has)):
            gap += 1
            continue
        word = _either(_quoted(terms.tag, term.lexeme) for term in has) or _quoted(terms.tag, "")
        said, gap = f"{said} <{gap}> {word}" if said else word, 1
    if not said:
        return None
    return f"({said})" if clause.wanted else f"!({said})"


def _either(parts: Iterable[str]) -> str:
    said = " | ".join(parts)
    return f"({said})" if said else ""


def _quoted(tag: int, lexeme: str, mark: str = "") -> str:
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{tag}{mark}.{escaped}'"
