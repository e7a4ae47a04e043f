"""The results of extraction: pages of elements, and the passages of search."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

Engine = Literal["fast", "hires", "unstructured_fast", "unstructured_hires"]
PageState = Literal["text", "ocr", "blank", "needs_ocr"]
"""The origin of a page's text: the text layer, or OCR. A `blank` page is empty; one that `needs_ocr` has only
images."""


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Element(_Value):
    """A paragraph, a heading, a list item, a table."""

    type: str
    """The names of Unstructured: Title, NarrativeText, ListItem, Table, Header, Footer, Image, ..."""
    text: str
    box: tuple[float, float, float, float] | None = None
    """Left, top, right, bottom as shares of the page, from its upper left corner."""
    confidence: float | None = None
    """The confidence of OCR, from 0 to 1; None for text of the file itself."""


class PageElements(_Value):
    """The elements of a page, of a sheet of a workbook, or of a slide; other formats have one page."""

    number: int
    state: PageState
    elements: tuple[Element, ...] = ()
    warnings: tuple[str, ...] = ()
    """Codes of `engines.error_codes.WARNINGS`."""

    @property
    def text(self) -> str:
        """The text of the page, a paragraph for each element."""
        return "\n\n".join(element.text for element in self.elements)


class Span(_Value):
    """The range of an element within a passage."""

    type: str
    start: int
    end: int
    box: tuple[float, float, float, float] | None = None


class Passage(_Value):
    """Consecutive elements of a page: the unit of search, a row of `document_chunks`."""

    index: int
    """The position in the document, from 0."""
    page: int
    type: str
    """The type of the first element that is not a heading."""
    text: str
    spans: tuple[Span, ...] = ()


class UnreadableFile(Exception):
    """A file that cannot be read; a retry does not help."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        """One of `engines.error_codes.CODES`, as `document.encrypted`."""
        self.message = message
