"""Pages and elements as the reader process sends them; the worker validates them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

Box = tuple[float, float, float, float]
"""Left, top, right, bottom as shares of the page, from its upper left corner."""


class ReadError(Exception):
    """The file cannot be read; `code` is one of `engines.error_codes.CODES`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class ReadElement:
    """A paragraph, heading, list item or table of a page."""

    type: str
    text: str
    box: Box | None = None
    confidence: float | None = None


@dataclass(frozen=True)
class ReadPage:
    """A page and its elements in reading order."""

    number: int
    state: str
    elements: Sequence[ReadElement] = ()
    warnings: Sequence[str] = ()

    def with_warning(self, code: str) -> ReadPage:
        """Return the page with one more warning."""
        return self if code in self.warnings else replace(self, warnings=(*self.warnings, code))


@dataclass(frozen=True)
class ReadTask:
    """The file to read, the engine, and the limits."""

    path: str
    name: str
    engine: str
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def hires(self) -> bool:
        """Whether images are read with OCR."""
        return self.engine == "hires"

    def limit(self, name: str) -> int:
        """Return a limit by its name."""
        return int(self.limits[name])


class PageSource(Protocol):
    """An open file."""

    @property
    def pages(self) -> int:
        """The number of pages."""

    def read(self, numbers: Sequence[int], fallback: bool) -> Iterator[ReadPage]:
        """Yield these pages; `fallback` reads the text layer only, after a page crashed the process."""


@dataclass(frozen=True)
class LoadedPages:
    """A file without random access: all pages were read when it was opened."""

    content: Sequence[ReadPage]

    @property
    def pages(self) -> int:
        """The number of pages."""
        return len(self.content)

    def read(self, numbers: Sequence[int], fallback: bool) -> Iterator[ReadPage]:
        """Yield these pages."""
        return (self.content[number - 1] for number in numbers)


def make_page(
    number: int, elements: Sequence[ReadElement], warnings: Sequence[str] = (), *, has_images: bool = False
) -> ReadPage:
    """Return a page with its state: text, blank, or needs_ocr if there are only images."""
    filled = [e for e in elements if e.text]
    if all(e.type == "Image" for e in filled):
        return ReadPage(number, "needs_ocr" if has_images or filled else "blank", filled, tuple(warnings))
    return ReadPage(number, "text", filled, (*warnings, "office.pictures") if has_images else tuple(warnings))


def nested_too_deeply() -> ReadError:
    """Return the error for markup with too many levels."""
    return ReadError("document.too_deep", "the file is nested too deeply")


def is_encrypted() -> ReadError:
    """Return the error for a file with a password."""
    return ReadError("document.encrypted", "the file is encrypted: remove its password")
