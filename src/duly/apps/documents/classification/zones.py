"""A document as it is judged: bounded, in small letters, with the places that count apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Zone = Literal["title", "body", "name"]
MOST = 40_000
"""Characters that are looked at: what a document is stands at its beginning."""
TITLE = 700
"""Characters of the first page that hold its head: sender, address, subject."""
_LONGEST_NAME = 255
_AROUND = 40
_APART = str.maketrans({"İ": "I", "\N{SOFT HYPHEN}": None, "\0": " "})  # "İ" alone grows when made small


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of text, and how much what is found in it counts."""

    zone: Zone
    page: int
    text: str
    low: str
    factor: float

    def find(self, phrase: str) -> int | None:
        """Where a phrase stands, as words of its own except where it has a star."""
        words = phrase.strip("*")
        start = self.low.find(words)
        while start >= 0:
            if self._bounded(phrase, start, start + len(words)):
                return start
            start = self.low.find(words, start + 1)
        return None

    def around(self, start: int, length: int) -> str:
        """The place, with a little of what stands about it."""
        return around(self.text, start, start + length)

    def _bounded(self, phrase: str, start: int, end: int) -> bool:
        begins = phrase.startswith("*") or not (start and self.low[start - 1].isalnum())
        return begins and (phrase.endswith("*") or not self.low[end : end + 1].isalnum())


def around(text: str, start: int, end: int) -> str:
    """A place in a text with a little of what stands about it, in whole words."""
    first, last = max(start - _AROUND, 0), min(end + _AROUND, len(text))
    while 0 < first < start and not text[first - 1].isspace():
        first += 1
    while end < last < len(text) and not text[last].isspace():
        last -= 1
    return text[first:last].strip()


def parts(pages: Sequence[str], name: str = "") -> list[Part]:
    """The name, the head of the first page that has words, the rest of it, and what follows."""
    return [*_named(name), *_read(pages)]


def _named(name: str) -> Iterator[Part]:
    spaced = name[:_LONGEST_NAME].rpartition(".")[0] or name[:_LONGEST_NAME]
    yield _part("name", 0, spaced.replace("_", " ").replace("-", " "), 1.5)


def _read(pages: Sequence[str]) -> Iterator[Part]:
    left, first = MOST, True
    for number, page in enumerate(pages, 1):
        text = " ".join(page[: 2 * left].translate(_APART).split())[:left]
        left -= len(text)
        if first and text:
            yield _part("title", number, text[:TITLE], 2.0)
            yield _part("body", number, text[TITLE - _AROUND :], 1.0)  # no phrase is cut in two
        elif text:
            yield _part("body", number, text, 0.5)
        first = first and not text
        if left <= 0:
            return


def _part(zone: Zone, page: int, text: str, factor: float) -> Part:
    return Part(zone, page, text, text.lower(), factor)
