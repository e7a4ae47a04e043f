"""From elements to passages: what belongs together, in pieces that search can point at."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from duly.apps.documents.elements import Element, PageElements, Passage, Span

_BETWEEN = "\n\n"
_WHOLE_TABLES = 4
"""How many times the usual size a table may have before it is cut between its rows."""
_SENTENCE = re.compile(r"[.!?…:;]['\"»“”)\]]*\s+|\n\s*")
_SPACE = re.compile(r"\s+")


@dataclass
class _Gathered:
    """A passage under way."""

    size: int
    text: str = ""
    spans: list[Span] = field(default_factory=list)

    def add(self, element: Element, piece: str) -> None:
        self.text = f"{self.text}{_BETWEEN}{piece}" if self.text else piece
        start = len(self.text) - len(piece)
        self.spans.append(Span(type=element.type, start=start, end=len(self.text), box=element.box))

    def has_room(self, element: Element, piece: str) -> bool:
        """A heading begins a passage, and what follows it stays with it."""
        if not self.has_text:
            return len(self.text) <= self.size
        return element.type != "Title" and len(self.text) + len(_BETWEEN) + len(piece) <= self.size

    @property
    def has_text(self) -> bool:
        return any(span.type != "Title" for span in self.spans)

    def passage(self, index: int, page: int) -> Passage:
        kind = next((span.type for span in self.spans if span.type != "Title"), "Title")
        return Passage(index=index, page=page, type=kind, text=self.text, spans=tuple(self.spans))


def passages(pages: Iterable[PageElements], size: int = 1000) -> Iterator[Passage]:
    """Elements under their heading, about `size` characters at a time; none goes over the end of a page."""
    index = 0
    for page in pages:
        for gathered in _gathered(page, size):
            yield gathered.passage(index, page.number)
            index += 1


def _gathered(page: PageElements, size: int) -> Iterator[_Gathered]:
    current = _Gathered(size)
    for element in page.elements:
        for piece in _pieces(element, size):
            if current.spans and not current.has_room(element, piece):
                yield current
                current = _Gathered(size)
            current.add(element, piece)
    if current.spans:
        yield current


def _pieces(element: Element, size: int) -> Iterator[str]:
    """Its text, cut at the end of a sentence where it is too long, of a row if it is a table."""
    text = element.text.strip()
    most = _WHOLE_TABLES * size if element.type == "Table" else size
    at = 0
    while len(text) - at > most:
        end = _end(text, at, size)
        yield text[at:end].rstrip()
        gap = _SPACE.match(text, end)
        at = gap.end() if gap else end
    if text:
        yield text[at:]


def _end(text: str, at: int, size: int) -> int:
    """Where to cut: the last end of a sentence in the second half, else the last space, else right there."""
    for mark in (_SENTENCE, _SPACE):
        ends = [found.end() for found in mark.finditer(text, at + max(1, size // 2), at + size)]
        if ends:
            return ends[-1]
    return at + size
