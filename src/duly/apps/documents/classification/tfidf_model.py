"""The model of an org: TF-IDF and logistic regression, stored as JSON and validated when it is loaded.

Its terms are words and word pairs, without numbers.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from duly.apps.documents.classification.models import OTHER, TYPE_NAME, Evidence, Verdict, best_type
from duly.apps.documents.classification.zones import excerpt

_MAX_CHARACTERS = 8_000
"""Characters of a document that the model reads."""
_WORD = re.compile(r"[^\W\d_]{2,30}")
THRESHOLD = 0.6
"""The least probability of a type; below it, a person has to review the document."""
MAX_TERMS = 20_000
MAX_LABELS = 40
MAX_MODEL_BYTES = 16 * 2**20
_MAX_EVIDENCE = 8
_MAX_CHARACTERS = 8_000
"""Characters of a document that the model reads."""
_WORD = re.compile(r"[^\W\d_]{2,30}")
Label = Annotated[str, Field(pattern=TYPE_NAME)]
Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e6, le=1e6)]


class InvalidModel(Exception):
    """The data is not a model, or not the one that was trained."""


class TfidfModel(BaseModel):
    """The weights of a model; classification needs nothing else."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    labels: tuple[Label, ...] = Field(min_length=2, max_length=MAX_LABELS)
    temperature: Annotated[Number, Field(gt=0)] = 1.0
    """Divides the scores, so that the confidence equals the accuracy."""
    mistrusted: tuple[str, ...] = ()
    """Types that the rules assign mostly to documents of other types in this org."""
    idf: dict[str, Number] = Field(max_length=MAX_TERMS)
    weights: dict[str, tuple[Number, ...]]

    @model_validator(mode="after")
    def _check_shape(self) -> TfidfModel:
        has_all_labels = all(len(row) == len(self.labels) for row in self.weights.values())
        if self.weights.keys() != self.idf.keys() or not has_all_labels:
            raise ValueError("the weights do not match the terms and labels")
        return self

    @classmethod
    def load(cls, data: bytes, sha256: str) -> TfidfModel:
        """Parse a stored model, or raise `InvalidModel` if it was changed."""
        if len(data) > MAX_MODEL_BYTES or hashlib.sha256(data).hexdigest() != sha256:
            raise InvalidModel("the checksum does not match")
        try:
            return cls.model_validate_json(data)
        except (ValidationError, ValueError) as error:
            raise InvalidModel("the data is not a model") from error

    @property
    def data(self) -> bytes:
        """The stored form."""
        return self.model_dump_json().encode()

    @property
    def sha256(self) -> str:
        """The checksum of the stored form."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def version(self) -> str:
        """The name of the model: equal examples give an equal one."""
        return f"model-{self.sha256[:12]}"

    def scores(self, counts: Mapping[str, int]) -> list[float] | None:
        """Return the score of each label; None if the model knows no term of the document."""
        values = tfidf_vector(counts, self.idf)
        if not values:
            return None
        sums = [0.0] * len(self.labels)
        for term, value in values.items():
            for index, weight in enumerate(self.weights[term]):
                sums[index] += value * weight
        return sums

    def classify(self, pages: Sequence[str], name: str, version: str) -> Verdict | None:
        """Return the verdict and the terms that decided it; None if the model knows no term."""
        scores = self.scores(count_terms(pages, name))
        if scores is None:
            return None
        verdict = decide(scores, self.labels, self.temperature, version)
        guess = best_type(dict(zip(self.labels, scores, strict=True)))
        return verdict.model_copy(update={"evidence": self._evidence(pages, name, guess)})

    def _evidence(self, pages: Sequence[str], name: str, doc_type: str) -> tuple[Evidence, ...]:
        """Return the terms that contribute most over the mean of all types, at their first position."""
        first_tokens = {token.term: token for token in reversed(list(tokenize(pages, name)))}
        index, share = self.labels.index(doc_type), 1 / len(self.labels)
        contributions = {
            term: value * (self.weights[term][index] - share * sum(self.weights[term]))
            for term, value in tfidf_vector(count_terms(pages, name), self.idf).items()
        }
        top = sorted(contributions, key=lambda term: (-contributions[term], term))[:_MAX_EVIDENCE]
        return tuple(
            Evidence(
                doc_type=doc_type,
                term=term,
                zone="body" if first_tokens[term].page else "name",
                page=first_tokens[term].page,
                text=first_tokens[term].excerpt,
                weight=round(contributions[term], 4),
            )
            for term in top
            if contributions[term] > 0
        )


def decide(scores: Sequence[float], labels: Sequence[str], temperature: float, version: str = "") -> Verdict:
    """Return the most probable type, or `other` if its probability is below the threshold."""
    probabilities = dict(zip(labels, softmax(scores, temperature), strict=True))
    doc_type = best_type(probabilities)
    is_sure = probabilities[doc_type] >= THRESHOLD
    return Verdict(
        doc_type=doc_type if is_sure else OTHER,
        confidence=round(probabilities[doc_type], 4),
        review=not is_sure,
        model_version=version,
    )


def tfidf_vector(counts: Mapping[str, int], idf: Mapping[str, float]) -> dict[str, float]:
    """Return the known terms with their weights: sublinear term frequency times inverse document frequency.

    The vector of all terms has length 1, and unknown terms count as rare: a document unlike the training set
    gets low scores.
    """
    rarest = max(idf.values(), default=0.0)
    values = {term: (1 + math.log(count)) * idf.get(term, rarest) for term, count in counts.items()}
    length = math.sqrt(sum(value * value for value in values.values()))
    return {term: value / length for term, value in values.items() if term in idf}


def softmax(scores: Sequence[float], temperature: float) -> list[float]:
    """Return scores as probabilities."""
    top = max(scores)
    powers = [math.exp((score - top) / temperature) for score in scores]
    return [power / sum(powers) for power in powers]


class TokenPosition(NamedTuple):
    """A term at its position in a page."""

    term: str
    page: int
    text: str
    start: int
    end: int

    @property
    def excerpt(self) -> str:
        """The text around the term."""
        return excerpt(self.text, self.start, self.end)


def tokenize(pages: Sequence[str], name: str = "") -> Iterator[TokenPosition]:
    """Yield the terms of the name (page 0) and of the first pages, in order."""
    for page, text in _truncate(pages, name):
        previous: re.Match[str] | None = None
        for word in _WORD.finditer(text):
            yield TokenPosition(word[0].lower(), page, text, word.start(), word.end())
            if previous is not None:
                pair = f"{previous[0]} {word[0]}".lower()
                yield TokenPosition(pair, page, text, previous.start(), word.end())
            previous = word


def count_terms(pages: Sequence[str], name: str = "") -> Counter[str]:
    """Return how often each term occurs."""
    return Counter(token.term for token in tokenize(pages, name))


def content_digest(pages: Sequence[str]) -> str:
    """Return a hash of the words: copies are one example, and the order of examples is deterministic."""
    return hashlib.sha256("\f".join(text for _, text in _truncate(pages, "")).encode()).hexdigest()


def _truncate(pages: Sequence[str], name: str) -> Iterator[tuple[int, str]]:
    yield 0, name[:255].rpartition(".")[0]
    remaining = _MAX_CHARACTERS
    for number, page in enumerate(pages, 1):
        text = " ".join(page[: 2 * remaining].split())[:remaining]
        remaining -= len(text)
        yield number, text.encode(errors="replace").decode()
        if remaining <= 0:
            return
