"""Tokenize a document for the model: words and word pairs, without numbers."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from duly.apps.documents.classification.zones import excerpt

_MAX_CHARACTERS = 8_000
"""Characters of a document that the model reads."""
_WORD = re.compile(r"[^\W\d_]{2,30}")


class TokenPosition(NamedTuple):
    """A term at its position in a page."""

    term: str
    page: int
    text: str
    start: int
    end: int

    @property
    def excerpt(self) -> str:
        """The text around the term."""
        return excerpt(self.text, self.start, self.end)


def tokenize(pages: Sequence[str], name: str = "") -> Iterator[TokenPosition]:
    """Yield the terms of the name (page 0) and of the first pages, in order."""
    for page, text in _truncate(pages, name):
        previous: re.Match[str] | None = None
        for word in _WORD.finditer(text):
            yield TokenPosition(word[0].lower(), page, text, word.start(), word.end())
            if previous is not None:
                pair = f"{previous[0]} {word[0]}".lower()
                yield TokenPosition(pair, page, text, previous.start(), word.end())
            previous = word


def count_terms(pages: Sequence[str], name: str = "") -> Counter[str]:
    """Return how often each term occurs."""
    return Counter(token.term for token in tokenize(pages, name))


def content_digest(pages: Sequence[str]) -> str:
    """Return a hash of the words: copies are one example, and the order of examples is deterministic."""
    return hashlib.sha256("\f".join(text for _, text in _truncate(pages, "")).encode()).hexdigest()


def _truncate(pages: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    yield 0, name[:255].rpartition(".")[0]
    remaining = _MAX_CHARACTERS
    for number, page in enumerate(pages, 1):
        text = " ".join(page[: 2 * remaining].split())[:remaining]
        remaining -= len(text)
        yield number, text.encode(errors="replace").decode()
        if remaining <= 0:
            return
