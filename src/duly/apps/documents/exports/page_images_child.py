"""Draws pages of one file, in a process of its own: `inside.py <file> <kind> <first> <last> <folder>`.

It imports nothing of Duly. Each page that it is done with, drawn or not, it names on a line.
"""

from __future__ import annotations

import ctypes
import resource
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

_MEMORY = 1536 * 2**20
_SECONDS = 300
_WRITTEN = 256 * 2**20
_DOTS = 100
_PIXELS = 4_000_000
"""Of a page that is drawn: a larger one is drawn smaller."""
_READ = 100_000_000
"""Of a picture that is read."""
_KINDS = ("PNG", "JPEG", "TIFF", "GIF", "WEBP", "BMP")
_PDEATHSIG = 1


def main(path: str, kind: str, first: int, last: int, folder: str) -> None:
    """Draw them; a page that cannot be drawn has no file."""
    _bind()
    draw = _pdf if kind == "pdf" else _pictures
    for number, picture in draw(path, first, last):
        with suppress(Exception):
            picture().convert("RGB").save(Path(folder, f"{number}.jpg"), "JPEG", quality=75)
        print(number, flush=True)


def _pdf(path: str, first: int, last: int) -> Iterator[tuple[int, Any]]:
    import pypdfium2 as pdfium  # type: ignore[import-untyped]

    document = pdfium.PdfDocument(path)
    for number in range(first, min(last, len(document)) + 1):
        yield number, lambda number=number: _drawn(document[number - 1])


def _drawn(page: Any) -> Any:
    width, height = page.get_size()
    scale = min(_DOTS / 72, (_PIXELS / max(width * height, 1.0)) ** 0.5)
    return page.render(scale=scale).to_pil()


def _pictures(path: str, first: int, last: int) -> Iterator[tuple[int, Any]]:
    from PIL import Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = _READ
    picture = Image.open(path, formats=_KINDS)
    for number in range(first, min(last, getattr(picture, "n_frames", 1)) + 1):
        yield number, lambda number=number: _frame(picture, number)


def _frame(picture: Any, number: int) -> Any:
    picture.seek(number - 1)
    frame = picture.convert("RGB")
    share = min(1.0, (_PIXELS / (frame.width * frame.height)) ** 0.5)
    return frame.resize((max(int(frame.width * share), 1), max(int(frame.height * share), 1)))


def _bind() -> None:
    """Bounds that the kernel keeps, and an end when the worker ends."""
    for what, most in (
        (resource.RLIMIT_AS, _MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, _SECONDS),
        (resource.RLIMIT_FSIZE, _WRITTEN),
    ):
        resource.setrlimit(what, (most, most))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
