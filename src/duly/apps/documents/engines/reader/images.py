"""Pictures: each of their frames is a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from PIL import Image, ImageOps, UnidentifiedImageError

from duly.apps.documents.engines.reader.models import Read, Task, Trouble

_FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "BMP")
_FRAMED = ("TIFF",)
_BROKEN = (OSError, ValueError, SyntaxError, EOFError, TypeError, IndexError, KeyError, ZeroDivisionError)


class Images:
    """A picture that is open."""

    def __init__(self, task: Task) -> None:
        self._task = task
        Image.MAX_IMAGE_PIXELS = None  # the limit below is the one that counts
        try:
            self._file = Image.open(task.path, formats=_FORMATS)
            self.pages = int(getattr(self._file, "n_frames", 1)) if self._file.format in _FRAMED else 1
        except (UnidentifiedImageError, *_BROKEN):
            raise Trouble("document.broken", "it is no whole picture") from None
        self._check()

    def read(self, numbers: Sequence[int], plain: bool) -> Iterator[Read]:
        """Those frames. Only `hires` can say what is on them."""
        for number in numbers:
            try:
                yield self._page(number) if self._task.hires else self._seen(number)
            except _BROKEN:
                if self.pages == 1:
                    raise Trouble("document.broken", "it is no whole picture") from None
                yield Read(number, "needs_ocr", warnings=("page.unreadable",))

    def _seen(self, number: int) -> Read:
        self._frame(number)
        return Read(number, "needs_ocr")

    def _page(self, number: int) -> Read:
        from duly.apps.documents.engines.reader.hires import engine as hires

        return hires.of_picture(number, self._frame(number), self._task)

    def _frame(self, number: int) -> Any:
        self._file.seek(number - 1)
        self._check()
        self._file.load()
        return ImageOps.exif_transpose(self._file).convert("RGB")

    def _check(self) -> None:
        width, height = self._file.size
        if width * height > self._task.limit("pixels_max"):
            raise Trouble("document.bomb", f"it is a picture of {width:,} by {height:,} dots")
