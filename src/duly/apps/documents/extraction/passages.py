"""Split the elements of pages into passages, the units of search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from duly.apps.documents.elements import Element, PageElements, Passage, Span

_SEPARATOR = "\n\n"
_TABLE_FACTOR = 4
"""Multiple of the usual size up to which a table is not split between its rows."""
_SENTENCE_END = re.compile(r"[.!?…:;]['\"»“”)\]]*\s+|\n\s*")
_SPACE = re.compile(r"\s+")


@dataclass
class _PassageBuilder:
    """A passage under construction."""

    size: int
    text: str = ""
    spans: list[Span] = field(default_factory=list)

    def add(self, element: Element, text: str) -> None:
        self.text = f"{self.text}{_SEPARATOR}{text}" if self.text else text
        start = len(self.text) - len(text)
        self.spans.append(Span(type=element.type, start=start, end=len(self.text), box=element.box))

    def fits(self, element: Element, text: str) -> bool:
        """Return whether an element belongs here: a heading starts a passage, and its text follows it."""
        if all(span.type == "Title" for span in self.spans):
            return len(self.text) <= self.size
        return element.type != "Title" and len(self.text) + len(_SEPARATOR) + len(text) <= self.size

    def build(self, index: int, page: int) -> Passage:
        passage_type = next((span.type for span in self.spans if span.type != "Title"), "Title")
        return Passage(index=index, page=page, type=passage_type, text=self.text, spans=tuple(self.spans))


def split_passages(pages: Iterable[PageElements], size: int = 1000) -> Iterator[Passage]:
    """Yield passages of about `size` characters, grouped under headings; none crosses a page."""
    index = 0
    for page in pages:
        for builder in _group_elements(page, size):
            yield builder.build(index, page.number)
            index += 1


def _group_elements(page: PageElements, size: int) -> Iterator[_PassageBuilder]:
    current = _PassageBuilder(size)
    for element in page.elements:
        for text in _split_text(element, size):
            if current.spans and not current.fits(element, text):
                yield current
                current = _PassageBuilder(size)
            current.add(element, text)
    if current.spans:
        yield current


def _split_text(element: Element, size: int) -> Iterator[str]:
    """Split a long text at the end of a sentence, and a long table at the end of a row."""
    text = element.text.strip()
    max_length = _TABLE_FACTOR * size if element.type == "Table" else size
    start = 0
    while len(text) - start > max_length:
        end = _find_split(text, start, size)
        yield text[start:end].rstrip()
        gap = _SPACE.match(text, end)
        start = gap.end() if gap else end
    if text:
        yield text[start:]


def _find_split(text: str, start: int, size: int) -> int:
    """Return the last end of a sentence in the second half, else the last space, else the size."""
    for pattern in (_SENTENCE_END, _SPACE):
        ends = [match.end() for match in pattern.finditer(text, start + max(1, size // 2), start + size)]
        if ends:
            return ends[-1]
    return start + size
