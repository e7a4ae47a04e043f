"""Documents on paper: a picture of each page, and after it the text that was read out of it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from duly.apps.documents.exports.fonts import font

_WIDTH, _HEIGHT = 595.0, 842.0  # A4
_MARGIN = 42.0
_LINE = 12.0
_SIZE = 9.0
_PER_PAGE = int((_HEIGHT - 2 * _MARGIN) / _LINE) - 3
_LONGEST = 200_000
"""Characters of one page's text."""


class Paper:
    """A PDF that grows page by page. The same content makes the same bytes."""

    def __init__(self) -> None:
        from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]

        self._font = font()
        self._out = io.BytesIO()
        self._canvas: Any = Canvas(self._out, pagesize=(_WIDTH, _HEIGHT), invariant=1, pageCompression=1)
        self.pages = 0
        self.lost = 0
        """Letters that the font does not have."""

    def picture(self, title: str, path: Path) -> None:
        """A page with a picture on it, as large as it fits."""
        self._head(title)
        self._canvas.drawImage(
            str(path),
            _MARGIN,
            _MARGIN,
            _WIDTH - 2 * _MARGIN,
            _HEIGHT - 2 * _MARGIN - 2 * _LINE,
            preserveAspectRatio=True,
            anchor="n",
        )
        self._turn()

    def text(self, title: str, text: str) -> None:
        """Text on as many pages as it takes; without any the title alone."""
        lines = [line for paragraph in text[:_LONGEST].splitlines() for line in self._written(paragraph)]
        for start in range(0, max(len(lines), 1), _PER_PAGE):
            self._head(title)
            for place, line in enumerate(lines[start : start + _PER_PAGE]):
                self._canvas.drawString(_MARGIN, _HEIGHT - _MARGIN - (place + 3) * _LINE, line)
            self._turn()

    def data(self) -> bytes:
        """All of it."""
        self._canvas.save()
        return self._out.getvalue()

    def _head(self, title: str) -> None:
        self._canvas.setFont(self._font.name, _SIZE)
        self._canvas.drawString(_MARGIN, _HEIGHT - _MARGIN, next(self._written(title), ""))

    def _turn(self) -> None:
        self._canvas.showPage()
        self.pages += 1

    def _written(self, paragraph: str) -> Iterator[str]:
        """Lines that fit, broken between words where there are any."""
        shown, lost = self._font.shown(paragraph)
        self.lost += lost
        left = shown.rstrip()
        while left:
            fits = self._fits(left)
            cut = fits if fits == len(left) else (left.rfind(" ", 1, fits + 1) + 1 or fits)
            yield left[:cut].rstrip()
            left = left[cut:].lstrip()

    def _fits(self, text: str) -> int:
        """How many letters fit on a line."""
        low, high = 1, min(len(text), 400)
        while low < high:
            middle = (low + high + 1) // 2
            fits = self._canvas.stringWidth(text[:middle], self._font.name, _SIZE) <= _WIDTH - 2 * _MARGIN
            low, high = (middle, high) if fits else (low, middle - 1)
        return low
