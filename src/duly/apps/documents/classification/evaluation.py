"""Evaluate a classifier: confusion matrix, precision, recall, F1 and calibration error."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import BaseModel


class Prediction(NamedTuple):
    """The confirmed type of a document, and the type that a classifier predicted."""

    actual: str
    predicted: str
    confidence: float


class TypeMetrics(BaseModel):
    """The metrics of one type."""

    precision: float
    recall: float
    f1: float
    support: int


class Measure(BaseModel):
    """A confusion matrix and its metrics."""

    documents: int
    accuracy: float
    macro_f1: float
    calibration_error: float
    """The mean distance between confidence and accuracy."""
    classes: dict[str, TypeMetrics]
    matrix: dict[str, dict[str, int]]
    """Counts by actual, then predicted type; without zeros."""


def evaluate(predictions: Sequence[Prediction]) -> Measure:
    """Compute the metrics of predictions."""
    pairs = Counter((one.actual, one.predicted) for one in predictions)
    actual = Counter(one.actual for one in predictions)
    predicted = Counter(one.predicted for one in predictions)
    classes = {
        label: _type_metrics(pairs[label, label], predicted[label], actual[label])
        for label in sorted(actual | predicted)
    }
    scores = [classes[label].f1 for label in actual]
    return Measure(
        documents=len(predictions),
        accuracy=_ratio(sum(pairs[label, label] for label in actual), len(predictions)),
        macro_f1=round(sum(scores) / len(scores), 4) if scores else 0.0,
        calibration_error=_calibration_error(predictions),
        classes=classes,
        matrix={row: {col: pairs[row, col] for col in classes if pairs[row, col]} for row in sorted(actual)},
    )


def confusion_csv(measures: dict[str, Measure]) -> bytes:
    """Return the confusion matrices as CSV: a row for each pair that occurred."""
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(["classifier", "actual", "predicted", "documents"])
    for name, measure in measures.items():
        for actual, row in measure.matrix.items():
            table.writerows([name, actual, predicted, count] for predicted, count in row.items())
    return text.getvalue().encode()


def _type_metrics(correct: int, predicted: int, actual: int) -> TypeMetrics:
    return TypeMetrics(
        precision=_ratio(correct, predicted),
        recall=_ratio(correct, actual),
        f1=_ratio(2 * correct, predicted + actual),
        support=actual,
    )


def _calibration_error(predictions: Sequence[Prediction], bins: int = 5) -> float:
    gaps = [0.0] * bins
    for one in predictions:
        gaps[min(int(one.confidence * bins), bins - 1)] += one.confidence - (one.actual == one.predicted)
    return _ratio(sum(abs(gap) for gap in gaps), len(predictions))


def _ratio(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0
