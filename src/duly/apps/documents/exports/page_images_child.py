"""Render pages of one file in a process of its own.

Usage: `page_images_child.py <file> <renderer> <first> <last> <folder>`.

It imports nothing of Duly. It prints the number of each finished page, rendered or not, on a line.
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

_MAX_MEMORY = 1536 * 2**20
_MAX_CPU_SECONDS = 300
_MAX_FILE_SIZE = 256 * 2**20
_DPI = 100
_MAX_PIXELS = 4_000_000
"""Of a rendered page; a larger page is scaled down."""
_MAX_SOURCE_PIXELS = 100_000_000
_IMAGE_FORMATS = ("PNG", "JPEG", "TIFF", "GIF", "WEBP", "BMP")
_PR_SET_PDEATHSIG = 1


def main(path: str, renderer: str, first: int, last: int, folder: str) -> None:
    """Render the pages; a page that cannot be rendered has no file."""
    _set_limits()
    pages = _pdf_pages if renderer == "pdf" else _image_frames
    for number, render in pages(path, first, last):
        with suppress(Exception):
            render().convert("RGB").save(Path(folder, f"{number}.jpg"), "JPEG", quality=75)
        print(number, flush=True)


def _pdf_pages(path: str, first: int, last: int) -> Iterator[tuple[int, Any]]:
    import pypdfium2 as pdfium  # type: ignore[import-untyped]

    document = pdfium.PdfDocument(path)
    for number in range(first, min(last, len(document)) + 1):
        yield number, lambda number=number: _render_page(document[number - 1])


def _render_page(page: Any) -> Any:
    width, height = page.get_size()
    scale = min(_DPI / 72, (_MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    return page.render(scale=scale).to_pil()


def _image_frames(path: str, first: int, last: int) -> Iterator[tuple[int, Any]]:
    from PIL import Image

    warnings.simplefilter("error", Image.DecompressionBombWarning)
    Image.MAX_IMAGE_PIXELS = _MAX_SOURCE_PIXELS
    image = Image.open(path, formats=_IMAGE_FORMATS)
    for number in range(first, min(last, getattr(image, "n_frames", 1)) + 1):
        yield number, lambda number=number: _render_frame(image, number)


def _render_frame(image: Any, number: int) -> Any:
    image.seek(number - 1)
    frame = image.convert("RGB")
    scale = min(1.0, (_MAX_PIXELS / (frame.width * frame.height)) ** 0.5)
    return frame.resize((max(int(frame.width * scale), 1), max(int(frame.height * scale), 1)))


def _set_limits() -> None:
    """Set limits that the kernel enforces, and die with the worker."""
    for limit, value in (
        (resource.RLIMIT_AS, _MAX_MEMORY),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, _MAX_CPU_SECONDS),
        (resource.RLIMIT_FSIZE, _MAX_FILE_SIZE),
    ):
        resource.setrlimit(limit, (value, value))
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
