"""The engine `hires`: the layout of a page, and its words from the text layer or by OCR."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duly.apps.documents.engines.reader.hires.orientation import MIN_CONFIDENCE, read_upright
from duly.apps.documents.engines.reader.hires.reading_order import order_elements
from duly.apps.documents.engines.reader.lines import Word, mean_confidence
from duly.apps.documents.engines.reader.models import ReadError, ReadPage, ReadTask

if TYPE_CHECKING:
    from duly.apps.documents.engines.reader.hires.layout_model import Region
    from duly.apps.documents.engines.reader.pdf import PdfPage

_OCR_DPI = 300
"""The resolution that Tesseract is trained for."""
_LAYOUT_DPI = 100
_MAX_PIXELS = 20_000_000
_OCR_SHARE_OF_TIMEOUT = 0.8


def read_pdf_page(number: int, page: PdfPage, task: ReadTask) -> ReadPage:
    """Read a page of a PDF: its text layer if there is a valid one, else by OCR."""
    text = page.text(task.limit("text_max"))
    if text.strip() and page.has_valid_fonts(text) and not page.is_scan(text):
        return _layout_page(number, "text", page.words(), page.render(_LAYOUT_DPI, _MAX_PIXELS))
    if not text.strip() and not page.has_objects():
        return ReadPage(number, "blank")
    read = read_image(number, page.render(_OCR_DPI, _MAX_PIXELS), task)
    is_valid = not text.strip() or page.has_valid_fonts(text)
    return read if is_valid else read.with_warning("page.fonts_broken")


def read_image(number: int, image: Any, task: ReadTask) -> ReadPage:
    """Read an image by OCR."""
    deadline = time.monotonic() + _OCR_SHARE_OF_TIMEOUT * task.limits["seconds_page"]
    try:
        upright = read_upright(_shrink(image), deadline)
    except ReadError:
        return ReadPage(number, "needs_ocr", warnings=("page.unreadable",))
    page = _layout_page(number, "ocr", upright.words, upright.image)
    page = replace(page, elements=[upright.to_original(element) for element in page.elements])
    confidence = mean_confidence(w.confidence for w in upright.words) or 1.0
    return page.with_warning("page.unsure") if confidence < MIN_CONFIDENCE else page


def _layout_page(number: int, state: str, words: Sequence[Word], image: Any) -> ReadPage:
    regions, warnings = _detect_regions(image)
    return ReadPage(number, state, order_elements(words, regions), warnings)


def _detect_regions(image: Any) -> tuple[Sequence[Region], tuple[str, ...]]:
    """Return the layout regions, or none with a warning: text without layout is better than no text."""
    from duly.apps.documents.engines.reader.hires.layout_model import detect_regions

    try:
        return detect_regions(image), ()
    except (ImportError, OSError, RuntimeError):
        return (), ("page.layout_missing",)


def _shrink(image: Any) -> Any:
    width, height = image.size
    if width * height <= _MAX_PIXELS:
        return image
    scale = (_MAX_PIXELS / (width * height)) ** 0.5
    return image.resize((max(1, int(width * scale)), max(1, int(height * scale))))
