"""The engine that looks at pages: where their parts are, and what is written on their pictures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duly.apps.documents.engines.reader.hires.orientation import UNSURE, upright
from duly.apps.documents.engines.reader.hires.reading_order import elements
from duly.apps.documents.engines.reader.lines import Word, mean
from duly.apps.documents.engines.reader.models import Read, Task, Trouble

if TYPE_CHECKING:
    from duly.apps.documents.engines.reader.hires.layout_model import Region
    from duly.apps.documents.engines.reader.pdf import Sheet

_DOTS = 300
"""Per inch: what Tesseract was made for."""
_FEWER_DOTS = 100
"""For finding the parts of a page only."""
_PIXELS = 20_000_000
_SHARE_OF_TIME = 0.8


def of_sheet(number: int, sheet: Sheet, task: Task) -> Read:
    """A page of a PDF: its own words where they are any, else those of its picture."""
    text = sheet.text(task.limit("text_max"))
    if text.strip() and sheet.sane(text) and not sheet.is_picture(text):
        picture = sheet.picture(_FEWER_DOTS, _PIXELS)
        return _page(number, "text", sheet.words(), picture)
    if not text.strip() and not sheet.shows_something():
        return Read(number, "blank")
    page = of_picture(number, sheet.picture(_DOTS, _PIXELS), task)
    return page if not text.strip() or sheet.sane(text) else page.warned("page.fonts_broken")


def of_picture(number: int, picture: Any, task: Task) -> Read:
    """A picture: what is written on it."""
    until = time.monotonic() + _SHARE_OF_TIME * task.limits["seconds_page"]
    try:
        seen = upright(_bounded(picture), until)
    except Trouble:
        return Read(number, "needs_ocr", warnings=("page.unreadable",))
    page = _page(number, "ocr", seen.words, seen.picture)
    page = replace(page, elements=[seen.as_it_was(element) for element in page.elements])
    return page.warned("page.unsure") if (mean(w.confidence for w in seen.words) or 1.0) < UNSURE else page


def _page(number: int, state: str, words: Sequence[Word], picture: Any) -> Read:
    found, warnings = _regions(picture)
    return Read(number, state, elements(words, found), warnings)


def _regions(picture: Any) -> tuple[Sequence[Region], tuple[str, ...]]:
    """The parts of the page, if they can be told: text without them is better than none."""
    from duly.apps.documents.engines.reader.hires import layout_model as layout

    try:
        return layout.regions(picture), ()
    except (ImportError, OSError, RuntimeError):
        return (), ("page.layout_missing",)


def _bounded(picture: Any) -> Any:
    width, height = picture.size
    if width * height <= _PIXELS:
        return picture
    share = (_PIXELS / (width * height)) ** 0.5
    return picture.resize((max(1, int(width * share)), max(1, int(height * share))))
