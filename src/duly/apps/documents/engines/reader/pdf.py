"""PDF: its pages one by one, each by xberg for its structure and by pdfium for its words."""

from __future__ import annotations

import ctypes
import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

import pypdfium2 as pdfium  # type: ignore[import-untyped]
import pypdfium2.raw as raw  # type: ignore[import-untyped]

from duly.apps.documents.engines.reader import xberg_adapter as structure
from duly.apps.documents.engines.reader.diacritics import MARKS, composed
from duly.apps.documents.engines.reader.lines import Word, likeness, lines, paragraphs
from duly.apps.documents.engines.reader.media_types import PDF
from duly.apps.documents.engines.reader.models import Box, Found, Read, Task, Trouble

_ENOUGH = 0.9
"""How much of the words of both readings has to be the same for the one with structure to be believed."""
_LARGE = 10_000
_HYPHEN = "\x02\ufffe"
_DIVIDED = re.compile(f"[{_HYPHEN}](?:\r?\n)?")
_STRANGE = re.compile("[\ufffd\ue000-\uf8ff\x00-\x08\x0e-\x1f]")
_MOST_STRANGE = 0.2
_PICTURE = 0.7
"""Share of a page from which on a picture is what the page shows."""
_FEW = 20
"""Words beside such a picture that may as well be a stamp on it."""


class Pdf:
    """A PDF that is open."""

    def __init__(self, task: Task) -> None:
        self._task = task
        self._file = _opened(task.path)
        self._file.init_forms()
        self.pages = len(self._file)
        if self.pages and not any(self._has(index) for index in range(self.pages)):
            raise Trouble("document.broken", "none of its pages can be read")

    def read(self, numbers: Sequence[int], plain: bool) -> Iterator[Read]:
        """Those pages; one that is damaged does not keep the others from being read."""
        for number in numbers:
            try:
                yield self._page(number, plain)
            except (pdfium.PdfiumError, ValueError, OSError):
                yield Read(number, "needs_ocr", warnings=("page.unreadable",))

    def part(self, numbers: Sequence[int]) -> bytes:
        """A PDF of only those pages."""
        part, out = pdfium.PdfDocument.new(), io.BytesIO()
        part.import_pages(self._file, [number - 1 for number in numbers])
        part.save(out)
        part.close()
        return out.getvalue()

    def _has(self, index: int) -> bool:
        """Whether a page is there, and not only counted."""
        try:
            self._file[index].close()
        except pdfium.PdfiumError:
            return False
        return True

    def _page(self, number: int, plain: bool) -> Read:
        page = Sheet(self._flat(number - 1))
        try:
            if self._task.hires and not plain:
                from duly.apps.documents.engines.reader.hires import engine as hires

                return hires.of_sheet(number, page, self._task)
            return self._text(number, page, plain)
        finally:
            page.close()

    def _flat(self, index: int) -> pdfium.PdfPage:
        """A page with what was filled in: the fields of a form lie above the page, and are no text of it."""
        page = self._file[index]
        if not _is_filled_in(page):
            return page
        raw.FPDFPage_Flatten(page, raw.FLAT_NORMALDISPLAY)
        page.close()
        return self._file[index]

    def _text(self, number: int, page: Sheet, plain: bool) -> Read:
        text = page.text(self._task.limit("text_max"))
        if not text.strip():
            return Read(number, "needs_ocr" if page.shows_something() else "blank")
        if not page.sane(text):
            return Read(number, "needs_ocr", warnings=("page.fonts_broken",))
        warnings = ("page.picture",) if page.is_picture(text) else ()
        elements = [] if plain or page.is_dotted(text) else self._structured(number, page)
        if likeness(text, "\n".join(e.text for e in elements)) < _ENOUGH:
            elements = list(paragraphs(lines(page.words())))
            warnings = (*warnings, "page.plain")
        return Read(number, "text", elements, warnings)

    def _structured(self, number: int, page: Sheet) -> list[Found]:
        try:
            nodes = structure.read(self.part([number]), PDF).nodes
        except Trouble:  # what pdfium opens, xberg may not
            return []
        return [structure.element(node, page.share) for node in nodes if structure.text(node)]


class Sheet:
    """A page of it: its words, what it shows, its picture."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._page = page
        self._text = page.get_textpage()

    def close(self) -> None:
        """Give back its memory."""
        self._text.close()
        self._page.close()

    def text(self, most: int = -1) -> str:
        """All of it, in the order in which it is written."""
        count = self._text.count_chars()
        if most >= 0:
            count = min(count, most)
        return _DIVIDED.sub("", self._text.get_text_range(0, count)) if count else ""

    def sane(self, text: str) -> bool:
        """Whether its text layer says anything: some fonts have no letters behind their shapes."""
        return len(_STRANGE.findall(text)) <= _MOST_STRANGE * len(text)

    def is_dotted(self, text: str) -> bool:
        """Whether letters have their dots beside them, which xberg does not put together."""
        if not any(mark in text for mark in MARKS):
            return False
        chars = list(self._chars())
        return len(composed(chars)) < len(chars)

    def words(self) -> list[Word]:
        """Its words and where they are."""
        found: list[Word] = []
        text, line = "", 0
        boxes: list[Box] = []
        for char, box in composed(list(self._chars())):
            if char in _HYPHEN:
                continue
            if not char.isspace():
                text += char
                boxes.append(box)
                continue
            if text:
                found.append(self._word(text, boxes, line))
                text, boxes = "", []
            line += char == "\n"
        return [*found, self._word(text, boxes, line)] if text else found

    def share(self, box: Box) -> Box:
        """A box of the page as shares of what is seen of it, whichever way it is turned."""
        corners = [self._seen(x, y) for x in box[::2] for y in box[1::2]]
        across, down = sorted(x for x, _ in corners), sorted(y for _, y in corners)
        return across[0], down[0], across[-1], down[-1]

    def shows_something(self) -> bool:
        """Whether there is anything on it at all."""
        return next(iter(self._page.get_objects(max_depth=2)), None) is not None

    def is_picture(self, text: str) -> bool:
        """Whether it is a picture, with no more than a stamp on it."""
        return len(text.split()) < _FEW and self._pictured() > _PICTURE

    def picture(self, dots: int, pixels: int) -> Any:
        """What it looks like, at so many dots per inch, unless that is too many in all."""
        width, height = self._page.get_size()
        scale = min(dots / 72, (pixels / max(1.0, width * height)) ** 0.5)
        return self._page.render(scale=max(scale, 0.01), may_draw_forms=True).to_pil().convert("RGB")

    def _pictured(self) -> float:
        kinds = [raw.FPDF_PAGEOBJ_IMAGE]
        boxes = [self.share(o.get_bounds()) for o in self._page.get_objects(filter=kinds, max_depth=2)]
        return max((_area(box) for box in boxes), default=0.0)

    def _chars(self) -> Iterator[tuple[str, Box]]:
        left, right, bottom, top = (ctypes.c_double() for _ in range(4))
        for at in range(self._text.count_chars()):
            raw.FPDFText_GetCharBox(self._text, at, left, right, bottom, top)
            box = (left.value, bottom.value, right.value, top.value)
            yield chr(raw.FPDFText_GetUnicode(self._text, at) & 0x1FFFFF), box

    def _word(self, text: str, boxes: list[Box], line: int) -> Word:
        left, bottom, right, top = zip(*boxes, strict=True)
        return Word(text, self.share((min(left), min(bottom), max(right), max(top))), line)

    def _seen(self, x: float, y: float) -> tuple[float, float]:
        across, down = ctypes.c_int(), ctypes.c_int()
        raw.FPDF_PageToDevice(self._page, 0, 0, _LARGE, _LARGE, 0, x, y, across, down)
        return across.value / _LARGE, down.value / _LARGE


def _is_filled_in(page: pdfium.PdfPage) -> bool:
    for at in range(raw.FPDFPage_GetAnnotCount(page)):
        note = raw.FPDFPage_GetAnnot(page, at)
        kind = raw.FPDFAnnot_GetSubtype(note)
        raw.FPDFPage_CloseAnnot(note)
        if kind in (raw.FPDF_ANNOT_WIDGET, raw.FPDF_ANNOT_FREETEXT, raw.FPDF_ANNOT_STAMP):
            return True
    return False


def _area(box: Box) -> float:
    left, top, right, bottom = (min(1.0, max(0.0, side)) for side in box)
    return (right - left) * (bottom - top)


def _opened(path: str) -> pdfium.PdfDocument:
    try:
        return pdfium.PdfDocument(path)
    except pdfium.PdfiumError as trouble:
        if trouble.err_code in (raw.FPDF_ERR_PASSWORD, raw.FPDF_ERR_SECURITY):
            raise Trouble("document.encrypted", "it asks for a password") from None
        raise Trouble("document.broken", "it is no whole PDF") from None
