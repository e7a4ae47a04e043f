"""Train a model on confirmed documents, and evaluate it by cross-validation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from duly.apps.documents.classification.classifier import choose_verdict
from duly.apps.documents.classification.evaluation import Measure, Prediction, evaluate
from duly.apps.documents.classification.models import Verdict
from duly.apps.documents.classification.rules import classify_by_rules
from duly.apps.documents.classification.tfidf_model import (
    MAX_LABELS,
    MAX_TERMS,
    TfidfModel,
    content_digest,
    count_terms,
    decide,
    softmax,
    tfidf_vector,
)

MIN_EXAMPLES = 30
MIN_EXAMPLES_PER_TYPE = 6
FOLDS = 5
_MIN_DOCUMENT_FREQUENCY = 2
"""Documents that contain a term: one of a single document would be memorized, and stored."""
_TEMPERATURES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
"""Not lower, even if all predictions were correct: new documents may be unlike the training set."""


class TooFewExamples(Exception):
    """There are not enough confirmed documents for training."""


@dataclass(frozen=True)
class Example:
    """A document with a confirmed type."""

    pages: tuple[str, ...]
    name: str
    doc_type: str

    @cached_property
    def counts(self) -> Counter[str]:
        """The terms and their counts."""
        return count_terms(self.pages, self.name)

    @cached_property
    def digest(self) -> str:
        """A hash of the content."""
        return content_digest(self.pages)

    @cached_property
    def rules_verdict(self) -> Verdict:
        """The verdict of the rules."""
        return classify_by_rules(self.pages, self.name)


class HeldOutExample(NamedTuple):
    """An example, and the scores of a model that was trained without it."""

    example: Example
    model: TfidfModel
    scores: list[float] | None

    def predict(self, temperature: float) -> Prediction:
        """Return the prediction of the model and the rules together."""
        model_verdict = None if self.scores is None else decide(self.scores, self.model.labels, temperature)
        verdict = choose_verdict(self.example.rules_verdict, model_verdict, self.model)
        return Prediction(self.example.doc_type, verdict.doc_type, verdict.confidence)


class TrainedModel(NamedTuple):
    """A model of all examples, and the cross-validated metrics of the model and the rules."""

    model: TfidfModel
    examples: int
    model_measure: Measure
    rules_measure: Measure

    @property
    def is_better(self) -> bool:
        """Whether the model is more accurate than the rules."""
        return self.model_measure.accuracy > self.rules_measure.accuracy


def train(examples: Iterable[Example]) -> TrainedModel:
    """Train a model; the last of equal documents counts. Equal examples give an equal model."""
    distinct = sorted({one.digest: one for one in examples}.values(), key=lambda one: one.digest)
    labels = _choose_labels(distinct)
    held_out = _cross_validate(distinct, labels)
    temperature = _choose_temperature(held_out)
    return TrainedModel(
        model=_fit(distinct, labels, temperature),
        examples=len(distinct),
        model_measure=evaluate([one.predict(temperature) for one in held_out]),
        rules_measure=evaluate_rules(distinct),
    )


def evaluate_rules(examples: Sequence[Example]) -> Measure:
    """Return the metrics of the rules."""
    return evaluate(
        [
            Prediction(one.doc_type, one.rules_verdict.doc_type, one.rules_verdict.confidence)
            for one in examples
        ]
    )


def _choose_labels(examples: Sequence[Example]) -> tuple[str, ...]:
    counts = Counter(one.doc_type for one in examples)
    labels = sorted(
        label for label, count in counts.most_common(MAX_LABELS) if count >= MIN_EXAMPLES_PER_TYPE
    )
    if len(examples) < MIN_EXAMPLES or len(labels) < 2:
        raise TooFewExamples(
            f"{len(examples)} different documents are confirmed, {len(labels)} types have "
            f"{MIN_EXAMPLES_PER_TYPE} or more: training needs {MIN_EXAMPLES} documents and 2 such types"
        )
    return tuple(labels)


def _cross_validate(examples: Sequence[Example], labels: tuple[str, ...]) -> list[HeldOutExample]:
    folds = _split_folds(examples)
    held_out: list[HeldOutExample] = []
    for fold in folds:
        model = _fit([one for other in folds if other is not fold for one in other], labels)
        held_out += [HeldOutExample(one, model, model.scores(one.counts)) for one in fold]
    return held_out


def _split_folds(examples: Sequence[Example]) -> list[list[Example]]:
    """Split the examples, ordered by content, into stratified folds."""
    folds: list[list[Example]] = [[] for _ in range(FOLDS)]
    counts: Counter[str] = Counter()
    for one in examples:
        folds[counts[one.doc_type] % FOLDS].append(one)
        counts[one.doc_type] += 1
    return folds


def _fit(examples: Sequence[Example], labels: tuple[str, ...], temperature: float = 1.0) -> TfidfModel:
    training_set = [one for one in examples if one.doc_type in labels]
    idf = _inverse_document_frequencies(training_set)
    return TfidfModel(
        labels=labels,
        temperature=temperature,
        mistrusted=_mistrusted_types(examples),
        idf=idf,
        weights=_fit_weights(training_set, labels, idf),
    )


def _mistrusted_types(examples: Sequence[Example]) -> tuple[str, ...]:
    balance: Counter[str] = Counter()
    for one in examples:
        if not one.rules_verdict.review:
            balance[one.rules_verdict.doc_type] += 1 if one.rules_verdict.doc_type == one.doc_type else -1
    return tuple(sorted(doc_type for doc_type, count in balance.items() if count < 0))


def _inverse_document_frequencies(training_set: Sequence[Example]) -> dict[str, float]:
    frequencies: Counter[str] = Counter()
    for one in training_set:
        frequencies.update(one.counts.keys())
    frequent = ((term, df) for term, df in frequencies.items() if df >= _MIN_DOCUMENT_FREQUENCY)
    terms = sorted(frequent, key=lambda pair: (-pair[1], pair[0]))[:MAX_TERMS]
    return {term: round(math.log((1 + len(training_set)) / (1 + df)) + 1, 5) for term, df in terms}


def _fit_weights(
    training_set: Sequence[Example], labels: tuple[str, ...], idf: dict[str, float]
) -> dict[str, tuple[float, ...]]:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    matrix = _sparse_matrix([tfidf_vector(one.counts, idf) for one in training_set], list(idf))
    # Without an intercept: the frequency of a type alone is no evidence for it.
    fit = LogisticRegression(C=20.0, fit_intercept=False, class_weight="balanced", max_iter=1_000, tol=1e-3)
    with threadpool_limits(1):  # small matrices: more threads only wait for one another
        fit.fit(matrix, [labels.index(one.doc_type) for one in training_set])
    rows = fit.coef_.tolist()
    if len(labels) == 2:  # binary regression has only one row, the difference
        rows = [[-x / 2 for x in rows[0]], [x / 2 for x in rows[0]]]
    columns = zip(*rows, strict=True)
    return {term: tuple(round(x, 5) for x in column) for term, column in zip(idf, columns, strict=True)}


def _sparse_matrix(vectors: Sequence[dict[str, float]], vocabulary: Sequence[str]) -> Any:
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

    index = {term: column for column, term in enumerate(vocabulary)}
    cells = [
        (row, index[term], value) for row, vector in enumerate(vectors) for term, value in vector.items()
    ]
    rows, columns, values = zip(*cells, strict=True)
    return csr_matrix((values, (rows, columns)), shape=(len(vectors), len(vocabulary)))


def _choose_temperature(held_out: Sequence[HeldOutExample]) -> float:
    """Return the temperature with the lowest log loss on held-out examples."""
    scored = [
        (one.model.labels.index(one.example.doc_type), one.scores)
        for one in held_out
        if one.scores is not None and one.example.doc_type in one.model.labels
    ]

    def log_loss(temperature: float) -> float:
        return -sum(math.log(max(softmax(scores, temperature)[label], 1e-9)) for label, scores in scored)

    return min(_TEMPERATURES, key=log_loss)
