"""Zones of a document for the rules: file name, title and body, each with the weight of its matches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

MAX_CHARACTERS = 40_000
"""The beginning of a document tells its type."""
TITLE_LENGTH = 700
"""Characters of the first page with sender, address and subject."""
_MAX_NAME_LENGTH = 255
_EXCERPT_MARGIN = 40
# "İ" is the only letter whose small form has another length, which would shift positions.
_SAME_LENGTH = str.maketrans({"İ": "I", "\N{SOFT HYPHEN}": None, "\0": " "})


@dataclass(frozen=True, slots=True)
class Zone:
    """A part of a document, and the weight of matches in it."""

    name: Literal["title", "body", "name"]
    page: int
    text: str
    weight: float
    lower: str

    def find(self, phrase: str) -> int | None:
        """Return the position of a phrase of whole words; a star allows further letters."""
        words = phrase.strip("*")
        start = self.lower.find(words)
        while start >= 0:
            if self._is_whole(phrase, start, start + len(words)):
                return start
            start = self.lower.find(words, start + 1)
        return None

    def _is_whole(self, phrase: str, start: int, end: int) -> bool:
        begins = phrase.startswith("*") or not (start and self.lower[start - 1].isalnum())
        return begins and (phrase.endswith("*") or not self.lower[end : end + 1].isalnum())


def excerpt(text: str, start: int, end: int) -> str:
    """Return a match with the whole words around it."""
    first, last = max(start - _EXCERPT_MARGIN, 0), min(end + _EXCERPT_MARGIN, len(text))
    while 0 < first < start and not text[first - 1].isspace():
        first += 1
    while end < last < len(text) and not text[last].isspace():
        last -= 1
    return text[first:last].strip()


def split_zones(pages: Sequence[str], name: str = "") -> Iterator[Zone]:
    """Yield the name, the title and the rest of the first page with text, and the further pages."""
    stem = name[:_MAX_NAME_LENGTH].rpartition(".")[0] or name[:_MAX_NAME_LENGTH]
    yield _zone("name", 0, stem.replace("_", " ").replace("-", " "), 1.5)
    remaining, is_first = MAX_CHARACTERS, True
    for number, page in enumerate(pages, 1):
        text = " ".join(page[: 2 * remaining].translate(_SAME_LENGTH).split())[:remaining]
        remaining -= len(text)
        if is_first and text:
            yield _zone("title", number, text[:TITLE_LENGTH], 2.0)
            # Overlaps with the title, so that no phrase is split.
            yield _zone("body", number, text[TITLE_LENGTH - _EXCERPT_MARGIN :], 1.0)
        elif text:
            yield _zone("body", number, text, 0.5)
        is_first = is_first and not text
        if remaining <= 0:
            return


def _zone(name: Literal["title", "body", "name"], page: int, text: str, weight: float) -> Zone:
    return Zone(name, page, text, weight, text.lower())
