"""The key terms of all sources together."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from duly.apps.analyze.modules.likeness import Pair
from duly.apps.analyze.modules.terms import Term
from duly.apps.analyze.report import KeyTerm, SourceReport

_MOST_TERMS = 30


def overall_terms(sources: Sequence[SourceReport], pairs: Iterable[Pair]) -> tuple[KeyTerm, ...]:
    """A term counts by how well it does in each source: one long text does not outvote all others.

    Sources that are nearly the same count once, each term as in the one that says it best.
    """
    counts: Counter[str] = Counter()
    scores: defaultdict[str, float] = defaultdict(float)
    spelled: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for found in _groups(sources, pairs):
        for term, best in found.items():
            counts[term] += best.count
            scores[term] += best.score
            spelled[term][best.term] += 1
    order = sorted(scores, key=lambda term: (-scores[term], term))[:_MOST_TERMS]
    return tuple(
        KeyTerm(
            term=min(spelled[term], key=lambda written: (-spelled[term][written], written.swapcase())),
            count=counts[term],
            sources=spelled[term].total(),
            score=round(scores[term] / (scores[order[0]] or 1), 3),
        )
        for term in order
    )


def _groups(sources: Sequence[SourceReport], pairs: Iterable[Pair]) -> Iterable[dict[str, Term]]:
    """The terms of each source; of those that are alike, together."""
    groups: dict[str, dict[str, Term]] = {}
    first = _first_alike(sources, pairs)
    for one in sources:
        group = groups.setdefault(first[one.name], {})
        for found in one.terms.terms if one.terms else ():
            known = group.get(found.term.lower())
            if known is None or (found.score, found.count) > (known.score, known.count):
                group[found.term.lower()] = found
    return groups.values()


def _first_alike(sources: Sequence[SourceReport], pairs: Iterable[Pair]) -> dict[str, str]:
    """For each source the first one that it is like; itself, if there is none before."""
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        alike[pair.first].add(pair.second)
        alike[pair.second].add(pair.first)
    first: dict[str, str] = {}
    for one in sources:
        for name in (one.name, *alike[one.name]):
            first.setdefault(name, first.get(one.name, one.name))
    return first
