"""What is found in a file; the worker makes its pages and elements of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

Box = tuple[float, float, float, float]
"""Left, top, right, bottom as shares of the page, from its upper left corner."""


class Trouble(Exception):
    """The file cannot be read; `code` is one of those that `codes` lists."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Found:
    """An element."""

    type: str
    text: str
    box: Box | None = None
    confidence: float | None = None


@dataclass(frozen=True)
class Read:
    """A page."""

    number: int
    state: str
    elements: Sequence[Found] = ()
    warnings: Sequence[str] = ()

    def warned(self, *codes: str) -> Read:
        """The same, with more to know about it."""
        return replace(self, warnings=(*self.warnings, *(c for c in codes if c not in self.warnings)))


@dataclass(frozen=True)
class Task:
    """What is to be read, how, and within which bounds."""

    path: str
    name: str
    engine: str
    limits: dict[str, Any] = field(default_factory=dict)

    @property
    def hires(self) -> bool:
        """Whether pictures are read too."""
        return self.engine == "hires"

    def limit(self, name: str) -> int:
        """One of the bounds."""
        return int(self.limits[name])


class Source(Protocol):
    """A file that is open."""

    @property
    def pages(self) -> int:
        """How many it has."""

    def read(self, numbers: Sequence[int], plain: bool) -> Iterator[Read]:
        """Those pages; `plain` without whatever may have gone wrong before."""


def page(
    number: int, elements: Sequence[Found], warnings: Sequence[str] = (), *, pictured: bool = False
) -> Read:
    """A page with text, or one that has nothing; one that has only pictures waits for recognition."""
    kept = [e for e in elements if e.text]
    if all(e.type == "Image" for e in kept):
        return Read(number, "needs_ocr" if pictured or kept else "blank", kept, tuple(warnings))
    return Read(number, "text", kept, (*warnings, "office.pictures") if pictured else tuple(warnings))


@dataclass(frozen=True)
class Whole:
    """A file that was read at once: its pages are there already."""

    content: Sequence[Read]

    @property
    def pages(self) -> int:
        """How many it has."""
        return len(self.content)

    def read(self, numbers: Sequence[int], plain: bool) -> Iterator[Read]:
        """Those pages."""
        return (self.content[number - 1] for number in numbers)
