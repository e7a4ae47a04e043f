"""What somebody typed: words, and whether they wrote operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

from duly.apps.documents.search.normalize import readable
from duly.core.errors import ContractError

MAX_QUERY_LENGTH = 500
MOST_WORDS = 40
"""Further ones are not looked at: who types more has pasted a text."""
_TOKEN = re.compile(r'(-?)"([^"]*)"?|(\S+)')
_OR = frozenset({"OR", "ODER"})
_WORD = re.compile(r"\w(?:.*\w)?")


@dataclass(frozen=True, slots=True)
class Clause:
    """Words that must stand one after the other, or must not."""

    places: tuple[int, ...]
    wanted: bool = True


@dataclass(frozen=True, slots=True)
class Query:
    """Words in order; with operators also what must be there: one of the groups, all of its clauses."""

    words: tuple[str, ...]
    groups: tuple[tuple[Clause, ...], ...] | None = None


def parse(text: str) -> Query:
    """Read a query. Quotes, a leading minus and OR are operators; without any, each word may be there."""
    _check(text)
    words: list[str] = []
    groups: list[list[Clause]] = [[]]
    operators = False
    for minus, phrase, plain in _TOKEN.findall(text):
        operators |= not plain or plain in _OR or _is_negated(plain)
        if plain in _OR:
            groups.append([])
            continue
        wanted = not (minus or _is_negated(plain))
        said = readable((plain if wanted else plain[1:]) or phrase).split()
        fresh = [match[0] for match in map(_WORD.search, said) if match][: MOST_WORDS - len(words)]
        if fresh:
            groups[-1].append(Clause(tuple(range(len(words), len(words) + len(fresh))), wanted))
            words += fresh
    if not words:
        raise ContractError("there is no word in it", field="query", fix="say what to look for")
    return Query(tuple(words), _sane(groups) if operators else None)


def _is_negated(plain: str) -> bool:
    return len(plain) > 1 and plain[0] == "-" and plain[1].isalpha()


def _sane(groups: list[list[Clause]]) -> tuple[tuple[Clause, ...], ...]:
    kept = tuple(tuple(group) for group in groups if group)
    if not all(any(clause.wanted for clause in group) for group in kept):
        raise ContractError("it says only what must not be there", field="query", fix="add what to look for")
    return kept


def _check(text: str) -> None:
    if not text.strip():
        raise ContractError("is empty", field="query", fix="say what to look for")
    if len(text) > MAX_QUERY_LENGTH:
        raise ContractError(f"is longer than {MAX_QUERY_LENGTH} characters", field="query", fix="shorten it")
    if "\x00" in text or text != text.encode(errors="replace").decode():
        raise ContractError("holds characters that are no text", field="query", fix="leave them out")
