"""The terms of a document that an org's model knows: words and pairs of them, without figures."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from duly.apps.documents.classification.zones import around

MOST = 8_000
"""Characters of a document that a model reads."""
_WORD = re.compile(r"[^\W\d_]{2,30}")


class Term(NamedTuple):
    """A term where it stands."""

    term: str
    page: int
    text: str
    start: int
    end: int

    @property
    def around(self) -> str:
        """The place, with a little of what stands about it."""
        return around(self.text, self.start, self.end)


def found(pages: Sequence[str], name: str = "") -> Iterator[Term]:
    """Every term of the name (page 0) and of the first pages, in order."""
    for page, text in _bounded(pages, name):
        before: re.Match[str] | None = None
        for word in _WORD.finditer(text):
            yield Term(word[0].lower(), page, text, word.start(), word.end())
            if before is not None:
                yield Term(f"{before[0]} {word[0]}".lower(), page, text, before.start(), word.end())
            before = word


def counted(pages: Sequence[str], name: str = "") -> Counter[str]:
    """How often each term stands there."""
    return Counter(term.term for term in found(pages, name))


def digest(pages: Sequence[str]) -> str:
    """The same for the same words: copies are one example, and the order of examples is theirs alone."""
    return hashlib.sha256("\f".join(text for _, text in _bounded(pages, "")).encode()).hexdigest()


def _bounded(pages: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    yield 0, name[:255].rpartition(".")[0]
    left = MOST
    for number, page in enumerate(pages, 1):
        text = " ".join(page[: 2 * left].split())[:left]
        left -= len(text)
        yield number, text.encode(errors="replace").decode()
        if left <= 0:
            return
