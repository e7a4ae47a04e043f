"""The stems that a query is looked up by, and how common each is in the org."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.schema import Connection, statement
from duly.apps.documents.search import compounds
from duly.apps.documents.search.normalize import spellings, words
from duly.apps.documents.search.query import Query
from duly.apps.documents.search.spelling import nearest

# What a stem is worth: of the word itself, of the nearest to one that nothing has, of a part of a compound.
_WORD, _CORRECTED, _PART = 1.0, 0.8, 0.5
# One stop word more proves nothing: "war" is one in German, and no small matter in English.
_PROOF = 2

# Of a sentence with so many known words the others are not missed, and what is near to them would mislead.
_UNDERSTOOD = 4
# Words that ask, and are no stop words: whatever is written like them is not meant.
_ASKING = frozenset({"wann", "warum", "weshalb", "wieso", "wieviel", "woher", "wohin", "wodurch", "womit"})

Counts = tuple[int, int, int]
"""In how many passages a stem is: at all, twice, four times."""


@dataclass(slots=True)
class Term:
    """A stem in the org's index."""

    lexeme: str
    place: int
    """Of the word that it stands for."""
    weight: float
    df: int
    df2: int
    df4: int


@dataclass(slots=True)
class Terms:
    """All stems of a query that the org has."""

    tag: int = 0
    chunks: int = 0
    found: dict[str, Term] = field(default_factory=dict)
    stops: set[int] = field(default_factory=set)
    """Places of words that are nothing to look for."""
    doubtful: set[int] = field(default_factory=set)
    """Of those that are nothing in one language: no passage in it has them."""
    languages: tuple[str, ...] = ()
    """Those that the query may be in."""
    corrected: dict[int, set[str]] = field(default_factory=dict)
    """For words that nothing has, by place: stems that were taken instead."""

    def of(self, place: int) -> list[Term]:
        """Those of one word, its parts aside."""
        return [term for term in self.found.values() if term.place == place and term.weight > _PART]

    def idf(self, term: Term) -> float:
        """What it is worth to have it: rare ones are worth more."""
        return term.weight * math.log(1 + (self.chunks - term.df + 0.5) / (term.df + 0.5))

    def add(self, term: Term) -> None:
        """Take a stem; of two words that have it the one that counts more."""
        known = self.found.get(term.lexeme)
        if known is None or known.weight < term.weight:
            self.found[term.lexeme] = term


async def look_up(conn: Connection, org_id: UUID, query: Query, *, mistrust: bool = False) -> Terms:
    """Stem a query in all languages, count, and correct what nothing has; with `mistrust` every word."""
    if not compounds.loaded():
        await asyncio.to_thread(compounds.installed)
    asked = [(place, text, False) for place, word in enumerate(query.words) for text in spellings(word)]
    asked += [
        (place, part, True)
        for place in compounds.nouns(query.words)
        for noun in words(query.words[place])
        for part in compounds.split(noun.capitalize())
    ]
    places, texts, parts = map(list, zip(*asked, strict=True))
    values = {"org_id": org_id, "places": places, "texts": texts, "parts": parts}
    rows = [_Row(*row) for row in await (await conn.execute(statement("search/words"), values)).fetchall()]
    if mistrust:
        rows = [row._replace(df=0) for row in rows]
    terms = _taken(rows)
    if query.groups is None:
        await _correct(conn, terms, rows)
    return terms


class _Row(NamedTuple):
    tag: int
    chunks: int
    place: int
    part: bool
    config: str
    lexeme: str | None
    df: int | None
    df2: int
    df4: int


def _taken(rows: Sequence[_Row]) -> Terms:
    """Those stems that the org has. A part of a compound is worth less than a word."""
    if not rows:
        return Terms()
    stops, doubtful, languages = _stop_words(rows)
    terms = Terms(rows[0].tag, rows[0].chunks, stops=stops, doubtful=doubtful, languages=languages)
    for row in rows:
        if row.lexeme is not None and row.df and (row.part or row.place not in terms.stops):
            weight = _PART if row.part else _WORD
            terms.add(Term(row.lexeme, row.place, weight, row.df, row.df2, row.df4))
    return terms


class _Stops(NamedTuple):
    sure: set[int]
    """Places of stop words of the query's language, or of both where it cannot be told."""
    doubtful: set[int]
    """Of either."""
    languages: tuple[str, ...]


def _stop_words(rows: Sequence[_Row]) -> _Stops:
    german, english = (
        {row.place for row in rows if row.config == config and row.lexeme is None and not row.part}
        for config in ("german", "english")
    )
    lead = len(german) - len(english)
    if abs(lead) < _PROOF:
        return _Stops(german & english, german | english, ("german", "english"))
    return _Stops(german if lead > 0 else english, german | english, ("german" if lead > 0 else "english",))


async def _correct(conn: Connection, terms: Terms, rows: Sequence[_Row]) -> None:
    """For words that nothing has, take the nearest that something has."""
    unknown = defaultdict(set)
    known = {term.place for term in terms.found.values() if term.weight == _WORD}
    if len(known) >= _UNDERSTOOD:
        return
    known |= {row.place for row in rows if row.lexeme is None or row.lexeme in _ASKING}
    # A compound whose parts are there is no slip, only new.
    parts = Counter(row.place for row in rows if row.part and row.df)
    known |= {place for place, count in parts.items() if count > 1}
    for row in rows:
        meant = row.config in terms.languages and not row.part
        if row.lexeme is not None and meant and row.place not in known:
            unknown[row.place].add(row.lexeme)
    if not unknown:
        return
    near = await _near(conn, set().union(*unknown.values()))
    for place, stems in unknown.items():
        _take_nearest(terms, place, {stem: near[stem] for stem in stems if stem in near})


async def _near(conn: Connection, stems: set[str]) -> Mapping[str, dict[str, Counts]]:
    found = await conn.execute(statement("search/near"), {"words": sorted(stems)})
    near: defaultdict[str, dict[str, Counts]] = defaultdict(dict)
    for stem, lexeme, df, df2, df4 in await found.fetchall():
        if lexeme != stem:
            near[stem][lexeme] = (df, df2, df4)
    return near


def _take_nearest(terms: Terms, place: int, near: Mapping[str, Mapping[str, Counts]]) -> None:
    for stem, known in near.items():
        for lexeme in nearest(stem, [(lexeme, counts[0]) for lexeme, counts in known.items()]):
            terms.corrected.setdefault(place, set()).add(lexeme)
            terms.add(Term(lexeme, place, _CORRECTED, *known[lexeme]))
