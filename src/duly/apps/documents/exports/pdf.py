"""PDF files: an image of each page, followed by its text."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

_WIDTH, _HEIGHT = 595.0, 842.0  # A4
_MARGIN = 42.0
_LINE_HEIGHT = 12.0
_FONT_SIZE = 9.0
_LINES_PER_PAGE = int((_HEIGHT - 2 * _MARGIN) / _LINE_HEIGHT) - 3
_MAX_LINE_LENGTH = 400
_MAX_TEXT_LENGTH = 200_000
"""The characters of one page's text."""
_FONT_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts")
_FONT_FILES = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf")
"""Fonts with Latin, Greek and Cyrillic letters; without any, reportlab's own font has Latin ones."""
_FONT_NAME = "DulyExport"
_REPLACEMENT = "?"


class Font(NamedTuple):
    """A font that is registered with reportlab, and its letters."""

    name: str
    letters: frozenset[int]

    def substitute(self, text: str) -> tuple[str, int]:
        """Return the text with replacements for missing letters, and the number of replaced letters."""
        missing = sum(ord(letter) not in self.letters and letter.isprintable() for letter in text)
        return "".join(map(self._letter, text)), missing

    def _letter(self, letter: str) -> str:
        if ord(letter) in self.letters:
            return letter
        return _REPLACEMENT if letter.isprintable() else " "


@cache
def font() -> Font:
    """Return the most complete installed font."""
    from reportlab.pdfbase import pdfmetrics  # type: ignore[import-untyped]
    from reportlab.pdfbase.ttfonts import TTFont  # type: ignore[import-untyped]

    registered = TTFont(_FONT_NAME, str(next(_installed_fonts(), Path("Vera.ttf"))))
    pdfmetrics.registerFont(registered)
    return Font(_FONT_NAME, frozenset(registered.face.charToGlyph))


def _installed_fonts() -> Iterator[Path]:
    folders = [Path(folder) for folder in _FONT_FOLDERS if Path(folder).is_dir()]
    for name in _FONT_FILES:
        for folder in folders:
            yield from sorted(folder.rglob(name))


class PdfWriter:
    """A PDF that grows page by page. The same content yields the same bytes."""

    def __init__(self) -> None:
        from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]

        self._font = font()
        self._out = io.BytesIO()
        self._canvas: Any = Canvas(self._out, pagesize=(_WIDTH, _HEIGHT), invariant=1, pageCompression=1)
        self.pages = 0
        self.missing_letters = 0
        """Letters that the font does not have."""

    def add_image(self, title: str, path: Path) -> None:
        """Add a page with an image, as large as it fits."""
        self._write_title(title)
        self._canvas.drawImage(
            str(path),
            _MARGIN,
            _MARGIN,
            _WIDTH - 2 * _MARGIN,
            _HEIGHT - 2 * _MARGIN - 2 * _LINE_HEIGHT,
            preserveAspectRatio=True,
            anchor="n",
        )
        self._end_page()

    def add_text(self, title: str, text: str) -> None:
        """Add text on as many pages as it needs; without text, a page with the title."""
        lines = [line for paragraph in text[:_MAX_TEXT_LENGTH].splitlines() for line in self._wrap(paragraph)]
        for start in range(0, max(len(lines), 1), _LINES_PER_PAGE):
            self._write_title(title)
            for number, line in enumerate(lines[start : start + _LINES_PER_PAGE], 3):
                self._canvas.drawString(_MARGIN, _HEIGHT - _MARGIN - number * _LINE_HEIGHT, line)
            self._end_page()

    def data(self) -> bytes:
        """Return the finished file."""
        self._canvas.save()
        return self._out.getvalue()

    def _write_title(self, title: str) -> None:
        self._canvas.setFont(self._font.name, _FONT_SIZE)
        self._canvas.drawString(_MARGIN, _HEIGHT - _MARGIN, next(self._wrap(title), ""))

    def _end_page(self) -> None:
        self._canvas.showPage()
        self.pages += 1

    def _wrap(self, paragraph: str) -> Iterator[str]:
        """Yield lines that fit, broken between words where possible."""
        text, missing = self._font.substitute(paragraph)
        self.missing_letters += missing
        rest = text.rstrip()
        while rest:
            length = self._fitting_length(rest)
            cut = length if length == len(rest) else (rest.rfind(" ", 1, length + 1) + 1 or length)
            yield rest[:cut].rstrip()
            rest = rest[cut:].lstrip()

    def _fitting_length(self, text: str) -> int:
        """Return how many letters fit on a line, by bisection."""
        low, high = 1, min(len(text), _MAX_LINE_LENGTH)
        while low < high:
            middle = (low + high + 1) // 2
            width = self._canvas.stringWidth(text[:middle], self._font.name, _FONT_SIZE)
            low, high = (middle, high) if width <= _WIDTH - 2 * _MARGIN else (low, middle - 1)
        return low
