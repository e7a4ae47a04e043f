"""What is read out of a file: pages of elements, and the passages that search finds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Engine = Literal["fast", "hires", "unstructured_fast", "unstructured_hires"]
PageState = Literal["text", "ocr", "blank", "needs_ocr"]
"""Where its text is from: the file itself, or its picture. A `blank` one has nothing on it, and one that
`needs_ocr` has only a picture."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Element(_Value):
    """A paragraph, a heading, a table: something that a reader would point at."""

    type: str
    """As Unstructured names them: Title, NarrativeText, ListItem, Table, Header, Footer, Image, ..."""
    text: str
    box: tuple[float, float, float, float] | None = None
    """Left, top, right, bottom as shares of the page, from its upper left corner."""
    confidence: float | None = None
    """How sure the recognition was, from 0 to 1; none where the text was there."""


class PageElements(_Value):
    """A page of a file; of a table book a sheet, of a presentation a slide, of a letter all of it."""

    number: int
    state: PageState
    elements: tuple[Element, ...] = ()
    warnings: tuple[str, ...] = ()
    """Stable codes: what was done to it that somebody should know."""

    @property
    def text(self) -> str:
        """All of it, an element a paragraph."""
        return "\n\n".join(element.text for element in self.elements)


class Span(_Value):
    """An element within a passage: where it begins and ends there."""

    type: str
    start: int
    end: int
    box: tuple[float, float, float, float] | None = None


class Passage(_Value):
    """Elements of a page that belong together: what search finds, and `document_chunks` keeps."""

    index: int
    """Its place in the document, from 0."""
    page: int
    type: str
    """Of its first element that is no heading."""
    text: str
    spans: tuple[Span, ...] = ()


class UnreadableFile(Exception):
    """A file that cannot be read, for a reason that stays the same however often one tries."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """Stable, as `document.encrypted`."""
        self.message = message
