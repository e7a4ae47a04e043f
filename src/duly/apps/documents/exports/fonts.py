"""The letters that paper is written with: the fullest font that this machine has."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/Library/Fonts")
_KNOWN = ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "NotoSans-Regular.ttf", "Arial Unicode.ttf")
"""With Latin, Greek and Cyrillic letters. Where there is none of them, reportlab's own has Latin ones."""
_NAME = "DulyExport"
_INSTEAD = "?"


class Font(NamedTuple):
    """A font that reportlab knows by its name, and the letters that it has."""

    name: str
    letters: frozenset[int]

    def shown(self, text: str) -> tuple[str, int]:
        """The text with what can be shown of it, and how many letters cannot."""
        lost = sum(ord(letter) not in self.letters and letter.isprintable() for letter in text)
        return "".join(self._letter(letter) for letter in text), lost

    def _letter(self, letter: str) -> str:
        if ord(letter) in self.letters:
            return letter
        return _INSTEAD if letter.isprintable() else " "


@cache
def font() -> Font:
    """Found once."""
    from reportlab.pdfbase import pdfmetrics  # type: ignore[import-untyped]
    from reportlab.pdfbase.ttfonts import TTFont  # type: ignore[import-untyped]

    found = TTFont(_NAME, str(next(_installed(), Path("Vera.ttf"))))
    pdfmetrics.registerFont(found)
    return Font(_NAME, frozenset(found.face.charToGlyph))


def _installed() -> Iterator[Path]:
    folders = [Path(folder) for folder in _FOLDERS if Path(folder).is_dir()]
    for name in _KNOWN:
        for folder in folders:
            yield from sorted(folder.rglob(name))
