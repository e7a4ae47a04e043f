"""Making a model of confirmed documents, and measuring it on those that it has not seen."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from duly.apps.documents.classification import rules
from duly.apps.documents.classification import tokenizer as terms
from duly.apps.documents.classification.classifier import chosen
from duly.apps.documents.classification.evaluation import Judged, Measure, measured
from duly.apps.documents.classification.models import Verdict
from duly.apps.documents.classification.tfidf_model import (
    MOST_LABELS,
    MOST_TERMS,
    Model,
    decided,
    softmax,
    vector,
)

LEAST = 30
"""Confirmed documents that there must be."""
LEAST_EACH = 6
"""Of a type, before it is learned."""
FOLDS = 5
_SEEN_IN = 2
"""Documents that a term must stand in: what stands in one only would be learned by heart, and kept."""
_TEMPERATURES = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 5.0)
"""Never below the first, however right it was: there are documents unlike all that it was tried on."""


class TooFew(Exception):
    """Not enough was confirmed to learn from."""


@dataclass(frozen=True)
class Example:
    """A document whose type somebody confirmed."""

    pages: tuple[str, ...]
    name: str
    doc_type: str

    @cached_property
    def counts(self) -> Counter[str]:
        """Its terms."""
        return terms.counted(self.pages, self.name)

    @cached_property
    def digest(self) -> str:
        """Its words."""
        return terms.digest(self.pages)

    @cached_property
    def ruled(self) -> Verdict:
        """What the rules say of it."""
        return rules.classify(self.pages, self.name)


class Unseen(NamedTuple):
    """An example, and what a model says of it that was made without it."""

    example: Example
    model: Model
    scores: list[float] | None

    def judged(self, temperature: float) -> Judged:
        """As it would have been: together with the rules."""
        learned = None if self.scores is None else decided(self.scores, self.model.labels, temperature)
        said = chosen(self.example.ruled, learned, self.model)
        return Judged(self.example.doc_type, said.doc_type, said.confidence)


class Trained(NamedTuple):
    """A model of all examples, and how well such a one does on examples that it has not seen."""

    model: Model
    examples: int
    learned: Measure
    ruled: Measure

    @property
    def is_better(self) -> bool:
        """Whether it is worth using."""
        return self.learned.accuracy > self.ruled.accuracy


def train(examples: Iterable[Example]) -> Trained:
    """Learn from confirmed documents, the last of copies counting. The same ones make the same model."""
    known = sorted({one.digest: one for one in examples}.values(), key=lambda one: one.digest)
    labels = _labels(known)
    unseen = _unseen(known, labels)
    temperature = _temperature(unseen)
    return Trained(
        model=_fitted(known, labels, temperature),
        examples=len(known),
        learned=measured([one.judged(temperature) for one in unseen]),
        ruled=by_rules(known),
    )


def by_rules(examples: Sequence[Example]) -> Measure:
    """How well the rules do."""
    return measured([Judged(one.doc_type, one.ruled.doc_type, one.ruled.confidence) for one in examples])


def _labels(known: Sequence[Example]) -> tuple[str, ...]:
    each = Counter(one.doc_type for one in known)
    labels = sorted(label for label, count in each.most_common(MOST_LABELS) if count >= LEAST_EACH)
    if len(known) < LEAST or len(labels) < 2:
        raise TooFew(
            f"{len(known)} different documents are confirmed, {len(labels)} types have {LEAST_EACH} or more: "
            f"it takes {LEAST} documents and 2 such types"
        )
    return tuple(labels)


def _unseen(known: Sequence[Example], labels: tuple[str, ...]) -> list[Unseen]:
    """Every example with the scores of a model that was made without it."""
    folds = _folds(known)
    judged: list[Unseen] = []
    for held in folds:
        model = _fitted([one for fold in folds if fold is not held for one in fold], labels)
        judged += [Unseen(one, model, model.scores(one.counts)) for one in held]
    return judged


def _folds(known: Sequence[Example]) -> list[list[Example]]:
    """Dealt out type by type in the order of their content, so that each fold has its share of all."""
    folds: list[list[Example]] = [[] for _ in range(FOLDS)]
    seen: Counter[str] = Counter()
    for one in known:
        folds[seen[one.doc_type] % FOLDS].append(one)
        seen[one.doc_type] += 1
    return folds


def _fitted(known: Sequence[Example], labels: tuple[str, ...], temperature: float = 1.0) -> Model:
    learning = [one for one in known if one.doc_type in labels]
    idf = _idf(learning)
    return Model(
        labels=labels,
        temperature=temperature,
        mistrusted=_mistrusted(known),
        idf=idf,
        weights=_weights(learning, labels, idf),
    )


def _mistrusted(known: Sequence[Example]) -> tuple[str, ...]:
    right: Counter[str] = Counter()
    for one in known:
        if not one.ruled.review:
            right[one.ruled.doc_type] += 1 if one.ruled.doc_type == one.doc_type else -1
    return tuple(sorted(doc_type for doc_type, balance in right.items() if balance < 0))


def _idf(learning: Sequence[Example]) -> dict[str, float]:
    seen: Counter[str] = Counter()
    for one in learning:
        seen.update(one.counts.keys())
    common = sorted((-count, term) for term, count in seen.items() if count >= _SEEN_IN)[:MOST_TERMS]
    return {term: round(math.log((1 + len(learning)) / (1 - count)) + 1, 5) for count, term in common}


def _weights(
    learning: Sequence[Example], labels: tuple[str, ...], idf: dict[str, float]
) -> dict[str, tuple[float, ...]]:
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    table = _table([vector(one.counts, idf) for one in learning], list(idf))
    # Without an intercept: of what no term speaks, nothing is said, however common a type is.
    fit = LogisticRegression(C=20.0, fit_intercept=False, class_weight="balanced", max_iter=1_000, tol=1e-3)
    with threadpool_limits(1):  # small tables: more threads only wait for one another, and take others' time
        fit.fit(table, [labels.index(one.doc_type) for one in learning])
    rows = fit.coef_.tolist()
    if len(labels) == 2:  # of two types it has the difference only
        rows = [[-x / 2 for x in rows[0]], [x / 2 for x in rows[0]]]
    columns = zip(*rows, strict=True)
    return {term: tuple(round(x, 5) for x in column) for term, column in zip(idf, columns, strict=True)}


def _table(vectors: Sequence[dict[str, float]], vocabulary: Sequence[str]) -> Any:
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

    place = {term: column for column, term in enumerate(vocabulary)}
    cells = [
        (row, place[term], value) for row, values in enumerate(vectors) for term, value in values.items()
    ]
    rows, columns, found = zip(*cells, strict=True)
    return csr_matrix((found, (rows, columns)), shape=(len(vectors), len(vocabulary)))


def _temperature(unseen: Sequence[Unseen]) -> float:
    """By which confidence comes nearest to how often it was right on what was not seen."""
    scored = [
        (one.model.labels.index(one.example.doc_type), one.scores)
        for one in unseen
        if one.scores is not None and one.example.doc_type in one.model.labels
    ]

    def surprise(temperature: float) -> float:
        return -sum(math.log(max(softmax(scores, temperature)[label], 1e-9)) for label, scores in scored)

    return min(_TEMPERATURES, key=surprise)
