"""Look up the stems of a query, their document frequencies, and corrections of unknown words."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.schema import Connection, fetch_all
from duly.apps.documents.search import compounds
from duly.apps.documents.search.normalize import spellings, split_words
from duly.apps.documents.search.query import Query

# Weights of stems: of a word of the query, of a correction, of a part of a compound.
_WORD_WEIGHT, _CORRECTION_WEIGHT, _PART_WEIGHT = 1.0, 0.8, 0.5
_MIN_STOP_WORD_LEAD = 2
"""Stop words by which one language must lead: "war" is one in German, and a noun in English."""
_MAX_KNOWN_WORDS = 4
"""In a sentence with so many known words, corrections of the others would mislead."""
_QUESTION_WORDS = frozenset(
    {"wann", "warum", "weshalb", "wieso", "wieviel", "woher", "wohin", "wodurch", "womit"}
)
"""Not in PostgreSQL's stop words; they must not be corrected to similar words."""

_TWO_EDITS_LENGTH = 9
"""Letters from which on two edits are allowed, else one."""
_FREE_FIRST_LETTER_LENGTH = 6
"""The first letter of a shorter word must match: too many other words are near."""
_MAX_CORRECTIONS = 3

Frequencies = tuple[int, int, int]
"""The number of passages that contain a stem at least once, twice, four times."""


@dataclass(slots=True)
class QueryTerm:
    """A stem of a query that occurs in the org's index."""

    lexeme: str
    position: int
    """The position of its word in the query."""
    weight: float
    df: int
    df2: int
    df4: int


@dataclass(slots=True)
class QueryTerms:
    """The stems of a query that occur in the org's index."""

    tag: int = 0
    """The number of the org, which prefixes its lexemes in the index."""
    chunks: int = 0
    by_lexeme: dict[str, QueryTerm] = field(default_factory=dict)
    stop_words: set[int] = field(default_factory=set)
    """Positions of stop words."""
    possible_stop_words: set[int] = field(default_factory=set)
    """Positions of words that are stop words in one language: its passages do not contain them."""
    languages: tuple[str, ...] = ()
    """The possible languages of the query."""
    corrections: dict[int, set[str]] = field(default_factory=dict)
    """Stems that replace a word that no passage contains, by its position."""

    def at(self, position: int) -> list[QueryTerm]:
        """Return the stems of one word, without parts of compounds."""
        return [
            term
            for term in self.by_lexeme.values()
            if term.position == position and term.weight > _PART_WEIGHT
        ]

    def idf(self, term: QueryTerm) -> float:
        """Return the weighted inverse document frequency of BM25."""
        return term.weight * math.log(1 + (self.chunks - term.df + 0.5) / (term.df + 0.5))

    def add(self, term: QueryTerm) -> None:
        """Add a stem; of two words with the same stem, the one of higher weight counts."""
        known = self.by_lexeme.get(term.lexeme)
        if known is None or known.weight < term.weight:
            self.by_lexeme[term.lexeme] = term


class _StemRow(NamedTuple):
    tag: int
    chunks: int
    position: int
    is_part: bool
    config: str
    lexeme: str | None
    """None for a stop word of that configuration."""
    df: int | None
    df2: int
    df4: int


async def look_up_terms(
    conn: Connection, org_id: UUID, query: Query, *, treat_as_unknown: bool = False
) -> QueryTerms:
    """Stem a query in all languages, read the frequencies, and correct words that no passage contains.

    With `treat_as_unknown`, correct all words as if no passage contained them.
    """
    if not compounds.is_loaded():
        await asyncio.to_thread(compounds.is_installed)
    variants = [
        (position, spelling, False)
        for position, word in enumerate(query.words)
        for spelling in spellings(word)
    ]
    variants += [
        (position, part, True)
        for position in compounds.noun_positions(query.words)
        for noun in split_words(query.words[position])
        for part in compounds.split_compound(noun.capitalize())
    ]
    positions, texts, is_part = map(list, zip(*variants, strict=True))
    values = {"org_id": org_id, "positions": positions, "texts": texts, "is_part": is_part}
    rows = [_StemRow(*row) for row in await fetch_all(conn, "search/stem_query", values)]
    if treat_as_unknown:
        rows = [row._replace(df=0) for row in rows]
    terms = _known_terms(rows)
    if query.groups is None:
        await _correct_unknown(conn, terms, rows)
    return terms


def _known_terms(rows: Sequence[_StemRow]) -> QueryTerms:
    """Return the stems that the org's index contains."""
    if not rows:
        return QueryTerms()
    terms = _stop_words(rows)
    for row in rows:
        if row.lexeme is not None and row.df and (row.is_part or row.position not in terms.stop_words):
            weight = _PART_WEIGHT if row.is_part else _WORD_WEIGHT
            terms.add(QueryTerm(row.lexeme, row.position, weight, row.df, row.df2, row.df4))
    return terms


def _stop_words(rows: Sequence[_StemRow]) -> QueryTerms:
    """Tell the language of a query by its stop words; if that is unclear, only common ones are removed."""
    german, english = (
        {row.position for row in rows if row.config == config and row.lexeme is None and not row.is_part}
        for config in ("german", "english")
    )
    lead = len(german) - len(english)
    stop_words = german & english
    languages: tuple[str, ...] = ("german", "english")
    if lead >= _MIN_STOP_WORD_LEAD:
        stop_words, languages = german, ("german",)
    elif -lead >= _MIN_STOP_WORD_LEAD:
        stop_words, languages = english, ("english",)
    return QueryTerms(
        rows[0].tag,
        rows[0].chunks,
        stop_words=stop_words,
        possible_stop_words=german | english,
        languages=languages,
    )


async def _correct_unknown(conn: Connection, terms: QueryTerms, rows: Sequence[_StemRow]) -> None:
    """Add the nearest known stems for words that no passage contains."""
    known = {term.position for term in terms.by_lexeme.values() if term.weight == _WORD_WEIGHT}
    if len(known) >= _MAX_KNOWN_WORDS:
        return
    known |= {row.position for row in rows if row.lexeme is None or row.lexeme in _QUESTION_WORDS}
    # A compound of known parts is not misspelled, only new.
    parts = Counter(row.position for row in rows if row.is_part and row.df)
    known |= {position for position, count in parts.items() if count > 1}
    unknown = defaultdict(set)
    for row in rows:
        in_language = row.config in terms.languages and not row.is_part
        if row.lexeme is not None and in_language and row.position not in known:
            unknown[row.position].add(row.lexeme)
    if not unknown:
        return
    similar = await _similar_terms(conn, set().union(*unknown.values()))
    for position, stems in unknown.items():
        for stem in stems & similar.keys():
            candidates = similar[stem]
            for lexeme in nearest_words(stem, [(other, counts[0]) for other, counts in candidates.items()]):
                terms.corrections.setdefault(position, set()).add(lexeme)
                terms.add(QueryTerm(lexeme, position, _CORRECTION_WEIGHT, *candidates[lexeme]))


async def _similar_terms(conn: Connection, stems: set[str]) -> Mapping[str, dict[str, Frequencies]]:
    """Return the similar terms of the org's index for each stem."""
    similar: defaultdict[str, dict[str, Frequencies]] = defaultdict(dict)
    rows = await fetch_all(conn, "search/find_similar_terms", {"words": sorted(stems)})
    for stem, lexeme, df, df2, df4 in rows:
        if lexeme != stem:
            similar[stem][lexeme] = (df, df2, df4)
    return similar


def nearest_words(word: str, known: Iterable[tuple[str, int]]) -> list[str]:
    """Return the nearest of the known words, given with their frequencies; none if all are too far."""
    allowed = 2 if len(word) >= _TWO_EDITS_LENGTH else 1
    any_first_letter = len(word) >= _FREE_FIRST_LETTER_LENGTH
    near = sorted(
        (edit_distance(word, other, allowed), -frequency, other)
        for other, frequency in known
        if any_first_letter or other[0] == word[0]
    )
    return [other for distance, _, other in near if distance == near[0][0] <= allowed][:_MAX_CORRECTIONS]


def edit_distance(one: str, other: str, limit: int) -> int:
    """Return the number of missing, extra, wrong or swapped letters; above the limit some larger number."""
    # An edit changes the set of letters by two at most, which excludes nearly all words quickly.
    if abs(len(one) - len(other)) > limit or len(set(one) ^ set(other)) > 2 * limit:
        return limit + 1
    previous: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        earlier, previous, row = previous, row, [i]
        for j, against in enumerate(other, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, earlier[j - 2] + 1)
            row.append(cost)
        if min(row) > limit and min(previous) > limit:
            break
    return row[-1]
