"""OCR of rotated pages.

Tesseract reads text that is rotated to the right by itself. It reads text that is rotated to the left or
upside down with low confidence: such an image is rotated by 180 degrees and read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from duly.apps.documents.engines.reader.hires.ocr import recognize_words
from duly.apps.documents.engines.reader.lines import Word, clip_box, mean_confidence
from duly.apps.documents.engines.reader.models import Box, ReadElement, ReadError

MIN_CONFIDENCE = 0.6
"""Measured on scanned pages: upright ones are above 0.8, upside down ones below 0.5."""
_PREVIEW_SCALE = 2
"""Reduction of the image for a first comparison of the orientations."""
_MIN_WIDE_LETTERS = 4
"""Letters from which on an upright word is wider than high."""


@dataclass(frozen=True)
class UprightImage:
    """An upright image and its words."""

    image: Any
    words: Sequence[Word]
    quarter_turns: int = 0
    """Counterclockwise turns from the original image."""

    def rotate(self, quarter_turns: int) -> UprightImage:
        """Rotate the image and its words counterclockwise."""
        image = self.image.rotate(90 * quarter_turns, expand=True)
        words = [replace(word, box=_rotate_box(word.box, quarter_turns)) for word in self.words]
        return UprightImage(image, words, self.quarter_turns + quarter_turns)

    def to_original(self, element: ReadElement) -> ReadElement:
        """Return an element with its position on the original image."""
        box = element.box and clip_box(_rotate_box(element.box, -self.quarter_turns))
        return replace(element, box=box)


def read_upright(image: Any, deadline: float) -> UprightImage:
    """Read the words of an image in any orientation."""
    upright = UprightImage(image, recognize_words(image, deadline))
    if upright.words and _confidence(upright.words) < MIN_CONFIDENCE:
        with suppress(ReadError):  # keep the first result
            upright = _try_upside_down(upright, deadline)
    return upright.rotate(1) if _is_sideways(upright) else upright


def _try_upside_down(upright: UprightImage, deadline: float) -> UprightImage:
    """Return the better of an image and its 180 degree rotation."""
    image = upright.image.rotate(180)
    preview = image.resize(tuple(max(1, side // _PREVIEW_SCALE) for side in image.size))
    confidence = _confidence(upright.words)
    if _confidence(recognize_words(preview, deadline)) < confidence:
        return upright
    rotated = UprightImage(image, recognize_words(image, deadline), 2)
    return rotated if _confidence(rotated.words) > max(MIN_CONFIDENCE, confidence) else upright


def _confidence(words: Sequence[Word]) -> float:
    return mean_confidence(word.confidence for word in words) or 0.0


def _is_sideways(upright: UprightImage) -> bool:
    width, height = upright.image.size
    boxes = [word.box for word in upright.words if len(word.text) >= _MIN_WIDE_LETTERS]
    tall = sum((box[3] - box[1]) * height > (box[2] - box[0]) * width for box in boxes)
    return bool(2 * tall > len(boxes))


def _rotate_box(box: Box, quarter_turns: int) -> Box:
    for _ in range(quarter_turns % 4):
        left, top, right, bottom = box
        box = (top, 1 - right, bottom, 1 - left)
    return box
