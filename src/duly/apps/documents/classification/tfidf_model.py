"""What an org's confirmed documents have taught: weights of terms, kept as data and read without trust."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from duly.apps.documents.classification.models import OTHER, TYPE_NAME, Evidence, Verdict, best_type
from duly.apps.documents.classification.tokenizer import Term, counted, found

THRESHOLD = 0.6
"""The least that it must be sure by."""
MOST_TERMS = 20_000
MOST_LABELS = 40
MOST_BYTES = 16 * 2**20
_SHOWN = 8
Label = Annotated[str, Field(pattern=TYPE_NAME)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]


class ModelRefused(Exception):
    """Data that is no model, or not the one that was trained."""


class Model(BaseModel):
    """TF-IDF and logistic regression. Inference needs nothing but this."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    labels: tuple[Label, ...] = Field(min_length=2, max_length=MOST_LABELS)
    temperature: Annotated[Number, Field(gt=0)] = 1.0
    """What scores are divided by, so that confidence is how often it is right."""
    mistrusted: tuple[str, ...] = ()
    """What the rules say of documents that are mostly something else in this org."""
    idf: dict[str, Number] = Field(max_length=MOST_TERMS)
    weights: dict[str, tuple[Number, ...]]

    @model_validator(mode="after")
    def _fits(self) -> Model:
        fits = all(len(row) == len(self.labels) for row in self.weights.values())
        if self.weights.keys() != self.idf.keys() or not fits:
            raise ValueError("weights and labels do not fit")
        return self

    @classmethod
    def read(cls, data: bytes, sha256: str) -> Model:
        """A kept model, if it is what was kept."""
        if len(data) > MOST_BYTES or hashlib.sha256(data).hexdigest() != sha256:
            raise ModelRefused("it is not what was trained")
        try:
            return cls.model_validate_json(data)
        except (ValidationError, ValueError) as error:
            raise ModelRefused("it is no model") from error

    @property
    def data(self) -> bytes:
        """As it is kept."""
        return self.model_dump_json().encode()

    @property
    def sha256(self) -> str:
        """Of what is kept."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def version(self) -> str:
        """Its name: the same labels and texts make the same one."""
        return f"model-{self.sha256[:12]}"

    def scores(self, counts: Mapping[str, int]) -> list[float] | None:
        """How much speaks for each label; nothing if it knows no word of the document."""
        values = vector(counts, self.idf)
        if not values:
            return None
        sums = [0.0] * len(self.labels)
        for term, value in values.items():
            for place, weight in enumerate(self.weights[term]):
                sums[place] += value * weight
        return sums

    def classify(self, pages: Sequence[str], name: str, version: str) -> Verdict | None:
        """What it takes a document for, and the terms that made it so; None if it cannot say."""
        scores = self.scores(counted(pages, name))
        if scores is None:
            return None
        verdict = decided(scores, self.labels, self.temperature, version)
        guess = best_type(dict(zip(self.labels, scores, strict=True)))
        return verdict.model_copy(update={"evidence": self._evidence(pages, name, guess)})

    def _evidence(self, pages: Sequence[str], name: str, doc_type: str) -> tuple[Evidence, ...]:
        """The terms that brought it furthest ahead of the average of all types, where they first stand."""
        places = {term.term: term for term in reversed(list(found(pages, name)))}
        mine, share = self.labels.index(doc_type), 1 / len(self.labels)
        ahead = {
            term: value * (self.weights[term][mine] - share * sum(self.weights[term]))
            for term, value in vector(counted(pages, name), self.idf).items()
        }
        top = sorted(ahead, key=lambda term: (-ahead[term], term))[:_SHOWN]
        return tuple(_shown(doc_type, places[term], ahead[term]) for term in top if ahead[term] > 0)


def decided(scores: Sequence[float], labels: Sequence[str], temperature: float, version: str = "") -> Verdict:
    """The likeliest type, or `other` if it is not likely enough."""
    chances = dict(zip(labels, softmax(scores, temperature), strict=True))
    doc_type = best_type(chances)
    sure = chances[doc_type] >= THRESHOLD
    return Verdict(
        doc_type=doc_type if sure else OTHER,
        confidence=round(chances[doc_type], 4),
        review=not sure,
        model_version=version,
    )


def _shown(doc_type: str, term: Term, weight: float) -> Evidence:
    return Evidence(
        doc_type=doc_type,
        term=term.term,
        zone="body" if term.page else "name",
        page=term.page,
        text=term.around,
        weight=round(weight, 4),
    )


def vector(counts: Mapping[str, int], idf: Mapping[str, float]) -> dict[str, float]:
    """The known terms by weight: often counts little more than once, rare more than common.

    All terms together have the length one, those that were never seen among them as rare ones: of a document
    unlike all others little is known, and little is said.
    """
    rarest = max(idf.values(), default=0.0)
    values = {term: (1 + math.log(count)) * idf.get(term, rarest) for term, count in counts.items()}
    length = math.sqrt(sum(value * value for value in values.values()))
    return {term: value / length for term, value in values.items() if term in idf}


def softmax(scores: Sequence[float], temperature: float) -> list[float]:
    """Scores as chances."""
    top = max(scores)
    powers = [math.exp((score - top) / temperature) for score in scores]
    return [power / sum(powers) for power in powers]
