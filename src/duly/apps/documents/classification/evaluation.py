"""How well documents were told apart: who was taken for whom."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel


class Judged(NamedTuple):
    """A document whose type is known, and what it was taken for."""

    actual: str
    predicted: str
    confidence: float


class ClassFigures(BaseModel):
    """How well one type is known."""

    precision: float
    recall: float
    f1: float
    support: int


class Measure(BaseModel):
    """A confusion matrix, and what follows from it."""

    documents: int
    accuracy: float
    macro_f1: float
    calibration_error: float
    """How far confidence lies from being right, on average."""
    classes: dict[str, ClassFigures]
    matrix: dict[str, dict[str, int]]
    """By the actual type, then by what it was taken for; what never happened is left out."""


def measured(judged: Sequence[Judged]) -> Measure:
    """The figures of some judgements."""
    pairs = Counter((one.actual, one.predicted) for one in judged)
    actual = Counter(one.actual for one in judged)
    predicted = Counter(one.predicted for one in judged)
    classes = {
        label: _figures(pairs[label, label], predicted[label], actual[label])
        for label in sorted(actual | predicted)
    }
    known = [classes[label].f1 for label in actual]
    return Measure(
        documents=len(judged),
        accuracy=_share(sum(pairs[label, label] for label in actual), len(judged)),
        macro_f1=round(sum(known) / len(known), 4) if known else 0.0,
        calibration_error=_calibration_error(judged),
        classes=classes,
        matrix={row: {col: pairs[row, col] for col in classes if pairs[row, col]} for row in sorted(actual)},
    )


def as_csv(measures: dict[str, Measure]) -> bytes:
    """The matrices as a table: a row for each pair that occurred."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["classifier", "actual", "predicted", "documents"])
    for name, measure in measures.items():
        for actual, row in measure.matrix.items():
            table.writerows([name, actual, predicted, count] for predicted, count in row.items())
    return text.getvalue().encode()


def _figures(right: int, predicted: int, actual: int) -> ClassFigures:
    return ClassFigures(
        precision=_share(right, predicted),
        recall=_share(right, actual),
        f1=_share(2 * right, predicted + actual),
        support=actual,
    )


def _calibration_error(judged: Sequence[Judged], bins: int = 5) -> float:
    """Confidence against being right, in bins of confidence."""
    gaps = [0.0] * bins
    for one in judged:
        gaps[min(int(one.confidence * bins), bins - 1)] += one.confidence - (one.actual == one.predicted)
    return _share(sum(abs(gap) for gap in gaps), len(judged))


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
