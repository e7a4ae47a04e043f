"""PDF: structure by xberg, text layer by pdfium; pages are read one by one."""

from __future__ import annotations

import ctypes
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]

from duly.apps.documents.engines.reader import xberg_adapter
from duly.apps.documents.engines.reader.diacritics import COMBINING, compose
from duly.apps.documents.engines.reader.lines import Word, group_lines, group_paragraphs, word_f1
from duly.apps.documents.engines.reader.media_types import PDF
from duly.apps.documents.engines.reader.models import (
    Box,
    ReadElement,
    ReadError,
    ReadPage,
    ReadTask,
    is_encrypted,
)

_MIN_WORD_F1 = 0.9
"""Agreement with pdfium's text below which xberg's structure is not used: xberg loses text of some files."""
_DEVICE_SIZE = 10_000
_HYPHENS = "\x02\ufffe"
_HYPHENATION = re.compile(f"[{_HYPHENS}](?:\r?\n)?")
_UNMAPPED = re.compile("[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f]")
_MAX_UNMAPPED_SHARE = 0.2
_SCAN_AREA = 0.7
"""Share of the page that an image covers on a scanned page."""
_MAX_STAMP_WORDS = 20
"""Words on a scanned page that may only be a stamp."""


class PdfFile:
    """An open PDF."""

    def __init__(self, task: ReadTask) -> None:
        self._task = task
        self._file = _open_pdf(task.path)
        self._file.init_forms()
        self.pages = len(self._file)
        if self.pages and not any(self._can_load(index) for index in range(self.pages)):
            raise ReadError("document.broken", "none of the pages can be loaded")

    def read(self, numbers: Sequence[int], fallback: bool) -> Iterator[ReadPage]:
        """Yield these pages; a damaged page does not stop the others."""
        for number in numbers:
            try:
                yield self._read_page(number, fallback)
            except (pdfium.PdfiumError, ValueError, OSError):
                yield ReadPage(number, "needs_ocr", warnings=("page.unreadable",))

    def part(self, numbers: Sequence[int]) -> bytes:
        """Return a PDF of only these pages."""
        part, out = pdfium.PdfDocument.new(), io.BytesIO()
        part.import_pages(self._file, [number - 1 for number in numbers])
        part.save(out)
        part.close()
        return out.getvalue()

    def _can_load(self, index: int) -> bool:
        try:
            self._file[index].close()
        except pdfium.PdfiumError:
            return False
        return True

    def _read_page(self, number: int, fallback: bool) -> ReadPage:
        page = PdfPage(self._flattened(number - 1))
        try:
            if self._task.hires and not fallback:
                from duly.apps.documents.engines.reader.hires.engine import read_pdf_page

                return read_pdf_page(number, page, self._task)
            return self._read_text_layer(number, page, fallback)
        finally:
            page.close()

    def _flattened(self, index: int) -> pdfium.PdfPage:
        """Return a page with its form fields: pdfium does not count their values as text of the page."""
        page = self._file[index]
        if not _has_form_values(page):
            return page
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
        page.close()
        return self._file[index]

    def _read_text_layer(self, number: int, page: PdfPage, fallback: bool) -> ReadPage:
        text = page.text(self._task.limit("text_max"))
        if not text.strip():
            return ReadPage(number, "needs_ocr" if page.has_objects() else "blank")
        if not page.has_valid_fonts(text):
            return ReadPage(number, "needs_ocr", warnings=("page.fonts_broken",))
        warnings = ("page.picture",) if page.is_scan(text) else ()
        elements = [] if fallback or page.has_separate_marks(text) else self._structure(number, page)
        if word_f1(text, "\n".join(e.text for e in elements)) < _MIN_WORD_F1:
            elements = list(group_paragraphs(group_lines(page.words())))
            warnings = (*warnings, "page.plain")
        return ReadPage(number, "text", elements, warnings)

    def _structure(self, number: int, page: PdfPage) -> list[ReadElement]:
        try:
            nodes = xberg_adapter.extract(self.part([number]), PDF).nodes
        except ReadError:  # xberg rejects some files that pdfium opens
            return []
        return xberg_adapter.to_elements(nodes, page.to_shares)


class PdfPage:
    """A page of a PDF: its text layer, its objects, its rendering."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._page = page
        self._text = page.get_textpage()

    def close(self) -> None:
        """Free the memory of the page."""
        self._text.close()
        self._page.close()

    def text(self, max_chars: int) -> str:
        """Return the text layer in the order of the file."""
        count = min(self._text.count_chars(), max_chars)
        return _HYPHENATION.sub("", self._text.get_text_range(0, count)) if count else ""

    def has_valid_fonts(self, text: str) -> bool:
        """Return whether the text layer has readable characters: some fonts map none to their glyphs."""
        return len(_UNMAPPED.findall(text)) <= _MAX_UNMAPPED_SHARE * len(text)

    def has_separate_marks(self, text: str) -> bool:
        """Return whether umlaut dots are separate characters, which xberg does not compose."""
        if not any(mark in text for mark in COMBINING):
            return False
        chars = list(self._chars())
        return len(compose(chars)) < len(chars)

    def words(self) -> list[Word]:
        """Return the words of the text layer with their positions."""
        words: list[Word] = []
        text, line = "", 0
        boxes: list[Box] = []
        for char, box in compose(list(self._chars())):
            if char in _HYPHENS:
                continue
            if not char.isspace():
                text += char
                boxes.append(box)
                continue
            if text:
                words.append(self._word(text, boxes, line))
                text, boxes = "", []
            line += char == "\n"
        return [*words, self._word(text, boxes, line)] if text else words

    def to_shares(self, box: Box) -> Box:
        """Convert page coordinates to shares of the visible page, also of a rotated one."""
        corners = [self._to_share(x, y) for x in box[::2] for y in box[1::2]]
        across, down = sorted(x for x, _ in corners), sorted(y for _, y in corners)
        return across[0], down[0], across[-1], down[-1]

    def has_objects(self) -> bool:
        """Return whether there is anything on the page."""
        return next(iter(self._page.get_objects(max_depth=2)), None) is not None

    def is_scan(self, text: str) -> bool:
        """Return whether the page is an image, with no more text than a stamp."""
        return len(text.split()) < _MAX_STAMP_WORDS and self._image_area() > _SCAN_AREA

    def render(self, dpi: int, max_pixels: int) -> Any:
        """Render the page as an image, with a lower resolution if it had too many pixels."""
        width, height = self._page.get_size()
        scale = min(dpi / 72, (max_pixels / max(1.0, width * height)) ** 0.5)
        return self._page.render(scale=max(scale, 0.01), may_draw_forms=True).to_pil().convert("RGB")

    def _image_area(self) -> float:
        images = self._page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE], max_depth=2)
        return max((_area(self.to_shares(image.get_bounds())) for image in images), default=0.0)

    def _chars(self) -> Iterator[tuple[str, Box]]:
        left, right, bottom, top = (ctypes.c_double() for _ in range(4))
        for index in range(self._text.count_chars()):
            raw.FPDFText_GetCharBox(self._text, index, left, right, bottom, top)
            box = (left.value, bottom.value, right.value, top.value)
            yield chr(raw.FPDFText_GetUnicode(self._text, index) & 0x1FFFFF), box

    def _word(self, text: str, boxes: list[Box], line: int) -> Word:
        left, bottom, right, top = zip(*boxes, strict=True)
        return Word(text, self.to_shares((min(left), min(bottom), max(right), max(top))), line)

    def _to_share(self, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(self._page, 0, 0, _DEVICE_SIZE, _DEVICE_SIZE, 0, x, y, across, down)
        return across.value / _DEVICE_SIZE, down.value / _DEVICE_SIZE


def _has_form_values(page: pdfium.PdfPage) -> bool:
    for index in range(raw.FPDFPage_GetAnnotCount(page)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        subtype = raw.FPDFAnnot_GetSubtype(annotation)
        raw.FPDFPage_CloseAnnot(annotation)
        if subtype in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP):
            return True
    return False


def _area(box: Box) -> float:
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in box)
    return (right - left) * (bottom - top)


def _open_pdf(path: str) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        if error.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise is_encrypted() from None
        raise ReadError("document.broken", "the PDF is damaged or incomplete") from None
