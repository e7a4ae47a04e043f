"""Rank passages: weigh the terms, and choose candidates, enough to contain the best, few enough to be fast.

`documents.find_passages` (in the migrations) computes BM25 with these weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from duly.apps.documents.search.query import Clause, Query
from duly.apps.documents.search.query_terms import QueryTerm, QueryTerms

_COMPARISONS = 3600
"""Words times passages that are compared for rare words, and once more for common ones."""
_MIN_CANDIDATES, _MAX_CANDIDATES = 250, 600
_FILTER_FACTOR = 8
"""Multiple of the candidates where a filter may exclude nearly all of them."""
_ENOUGH_CANDIDATES = 100
_MAX_INDEX_ENTRIES = 3000
"""Entries of the index that are read to find passages with several common words."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """The queries of the index that `documents.find_passages` executes."""

    any: str | None
    all: str | None
    wide: str | None
    whole: str
    terms: list[str]
    weights: list[float]
    max_candidates: int


def plan_search(query: Query, terms: QueryTerms) -> SearchPlan | None:
    """Return how to execute a query; None if no passage can match."""
    rarest_first = sorted(terms.by_lexeme.values(), key=lambda term: (term.df, term.lexeme))
    lexemes = [_quote(terms.tag, term.lexeme) for term in rarest_first]
    weights = [terms.idf(term) for term in rarest_first]
    if query.groups is not None:
        tsquery = _groups_query(query.groups, terms)
        if tsquery is None:
            return None
        return SearchPlan(tsquery, None, tsquery, tsquery, lexemes, weights, _MAX_CANDIDATES)
    if not rarest_first:
        return None
    limit = max(_MIN_CANDIDATES, min(_MAX_CANDIDATES, _COMPARISONS // len(rarest_first)))
    narrow, common = _bounded_query(rarest_first, terms, limit)
    wide, _ = _bounded_query(rarest_first, terms, _FILTER_FACTOR * limit)
    return SearchPlan(
        narrow, _common_words_query(common, terms), wide, " | ".join(lexemes), lexemes, weights, limit
    )


def _bounded_query(
    rarest_first: Sequence[QueryTerm], terms: QueryTerms, limit: int
) -> tuple[str | None, list[QueryTerm]]:
    """Return a query for at most `limit` passages, and the common terms that it does not cover.

    It matches all passages with rare words, and those that contain a common word repeatedly. Common words are
    left out if they cannot outweigh a rare one, and the rare ones have enough passages.
    """
    parts: list[str] = []
    common: list[QueryTerm] = []
    count, best_idf = 0, 0.0
    for term in rarest_first:
        if count + term.df <= limit:
            parts.append(_quote(terms.tag, term.lexeme))
            count += term.df
            best_idf = max(best_idf, terms.idf(term))
        else:
            common.append(term)
    if count >= _ENOUGH_CANDIDATES and sum(map(terms.idf, common)) < best_idf:
        return " | ".join(parts), []
    for term in common:
        for repeated, df in (("+2", term.df2), ("+4", term.df4)):
            if 0 < df <= limit - count:
                parts.append(_quote(terms.tag, term.lexeme, repeated))
                count += df
                break
    return " | ".join(parts) or None, common


def _common_words_query(common: Sequence[QueryTerm], terms: QueryTerms) -> str | None:
    """Return a query for passages that contain all common words."""
    by_word: dict[int, list[QueryTerm]] = {}
    for term in common:
        by_word.setdefault(term.position, []).append(term)
    words = sorted(by_word.values(), key=lambda word: sum(term.df for term in word))
    if not words:
        return None
    rarest = words[0]
    repeated = "+2" if len(words) > 1 and sum(term.df for term in rarest) > _MAX_INDEX_ENTRIES else ""
    return " & ".join(
        _either(_quote(terms.tag, term.lexeme, repeated if word is rarest else "") for term in word)
        for word in words
    )


def _groups_query(groups: Iterable[Sequence[Clause]], terms: QueryTerms) -> str | None:
    """Return a query for one of the groups with all its clauses, without stop words."""
    parts = [" & ".join(filter(None, (_clause_query(clause, terms) for clause in group))) for group in groups]
    return _either(part for part in parts if part) if any(parts) else None


def _clause_query(clause: Clause, terms: QueryTerms) -> str | None:
    tsquery, distance = "", 1
    for position in clause.positions:
        stems = terms.at(position)
        is_possible_stop_word = position in terms.possible_stop_words
        if position in terms.stop_words or (
            is_possible_stop_word and (len(clause.positions) > 1 or not stems)
        ):
            distance += 1
            continue
        word = _either(_quote(terms.tag, term.lexeme) for term in stems) or _quote(terms.tag, "")
        tsquery, distance = f"{tsquery} <{distance}> {word}" if tsquery else word, 1
    if not tsquery:
        return None
    return f"!({tsquery})" if clause.is_negated else f"({tsquery})"


def _either(parts: Iterable[str]) -> str:
    alternatives = " | ".join(parts)
    return f"({alternatives})" if alternatives else ""


def _quote(tag: int, lexeme: str, repeated: str = "") -> str:
    """Return a lexeme as the index stores it: with the number of the org, and a mark for repetitions."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{tag}{repeated}.{escaped}'"
