"""Parse the text of a search: words, phrases and operators."""

from __future__ import annotations

import re
from dataclasses import dataclass

from duly.apps.documents.search.normalize import normalize
from duly.core.errors import ContractError

MAX_QUERY_LENGTH = 500
_MAX_WORDS = 40
"""Further words are ignored: a longer query is a pasted text."""
_TOKEN = re.compile(r'(-?)"([^"]*)"?|(\S+)')
_OR = frozenset({"OR", "ODER"})
_WORD = re.compile(r"\w(?:.*\w)?")


@dataclass(frozen=True, slots=True)
class Clause:
    """A word or a phrase, by the positions of its words; with a minus it must not occur."""

    positions: tuple[int, ...]
    is_negated: bool = False


@dataclass(frozen=True, slots=True)
class Query:
    """The words of a query; with operators also groups, of which one must match with all its clauses."""

    words: tuple[str, ...]
    groups: tuple[tuple[Clause, ...], ...] | None = None


def parse_query(text: str) -> Query:
    """Parse a query. Quotes, a leading minus and OR are operators; without any, every word is optional."""
    _check_text(text)
    words: list[str] = []
    groups: list[list[Clause]] = [[]]
    has_operators = False
    for minus, phrase, plain in _TOKEN.findall(text):
        has_operators |= not plain or plain in _OR or _has_minus(plain)
        if plain in _OR:
            groups.append([])
            continue
        is_negated = bool(minus) or _has_minus(plain)
        parts = normalize((plain[1:] if is_negated else plain) or phrase).split()
        new = [match[0] for match in map(_WORD.search, parts) if match][: _MAX_WORDS - len(words)]
        if new:
            groups[-1].append(Clause(tuple(range(len(words), len(words) + len(new))), is_negated))
            words += new
    if not words:
        raise ContractError("contains no words", field="query", fix="enter the words to search for")
    return Query(tuple(words), _check_groups(groups) if has_operators else None)


def _has_minus(plain: str) -> bool:
    return len(plain) > 1 and plain[0] == "-" and plain[1].isalpha()


def _check_groups(groups: list[list[Clause]]) -> tuple[tuple[Clause, ...], ...]:
    filled = tuple(tuple(group) for group in groups if group)
    if any(all(clause.is_negated for clause in group) for group in filled):
        raise ContractError(
            "only excludes words", field="query", fix="add a word that the documents must contain"
        )
    return filled


def _check_text(text: str) -> None:
    if not text.strip():
        raise ContractError("is empty", field="query", fix="enter the words to search for")
    if len(text) > MAX_QUERY_LENGTH:
        raise ContractError(f"is longer than {MAX_QUERY_LENGTH} characters", field="query", fix="shorten it")
    if "\x00" in text or text != text.encode(errors="replace").decode():
        raise ContractError("contains NUL or lone surrogates", field="query", fix="remove them")
