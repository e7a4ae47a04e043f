"""Image files: each frame is a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from PIL import Image, ImageOps, UnidentifiedImageError

from duly.apps.documents.engines.reader.models import ReadError, ReadPage, ReadTask

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP")
_MULTI_PAGE_FORMATS = ("TIFF",)
_DECODE_ERRORS = (
    OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, ZeroDivisionError,
)  # fmt: skip


class ImageFile:
    """An open image."""

    def __init__(self, task: ReadTask) -> None:
        self._task = task
        Image.MAX_IMAGE_PIXELS = None  # `_check_size` enforces the limit
        try:
            self._file = Image.open(task.path, formats=_FORMATS)
            is_multi_page = self._file.format in _MULTI_PAGE_FORMATS
            self.pages = int(getattr(self._file, "n_frames", 1)) if is_multi_page else 1
        except (UnidentifiedImageError, *_DECODE_ERRORS):
            raise _is_damaged() from None
        self._check_size()

    def read(self, numbers: Sequence[int], fallback: bool) -> Iterator[ReadPage]:
        """Yield these frames; without `hires` they need OCR."""
        for number in numbers:
            try:
                yield self._page(number)
            except _DECODE_ERRORS:
                if self.pages == 1:
                    raise _is_damaged() from None
                yield ReadPage(number, "needs_ocr", warnings=("page.unreadable",))

    def _page(self, number: int) -> ReadPage:
        frame = self._frame(number)
        if not self._task.hires:
            return ReadPage(number, "needs_ocr")
        from duly.apps.documents.engines.reader.hires.engine import read_image

        return read_image(number, frame, self._task)

    def _frame(self, number: int) -> Any:
        self._file.seek(number - 1)
        self._check_size()
        self._file.load()
        return ImageOps.exif_transpose(self._file).convert("RGB")

    def _check_size(self) -> None:
        width, height = self._file.size
        if width * height > self._task.limit("pixels_max"):
            raise ReadError("document.bomb", f"the image has {width:,} by {height:,} pixels")


def _is_damaged() -> ReadError:
    return ReadError("document.broken", "the image is damaged")
