"""What a document is by the words in it. Pure, and linear in what is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from duly.apps.documents.classification.models import OTHER, Evidence, Verdict, best_type
from duly.apps.documents.classification.phrases import GENERAL, Phrase, phrases, rivals
from duly.apps.documents.classification.zones import Part, parts

VERSION = "rules-1"
THRESHOLD = 0.35
"""The least that a type must be ahead by, or somebody has to look."""
_HANDICAP = 10.0
"""What a score is measured against if nothing else spoke: a single weak word is no proof."""
_SHOWN = 12


def classify(pages: Sequence[str] | str, name: str = "") -> Verdict:
    """The type that the words speak for, or `other` if none is far enough ahead of the next."""
    read = sorted(parts([pages] if isinstance(pages, str) else pages, name), key=lambda part: -part.factor)
    found = _distinct([one for phrase in phrases() if (one := _strongest(read, phrase))])
    doc_type, margin = _decided(_scores(found))
    sure = margin >= THRESHOLD
    shown = [one for one in found if one.doc_type == doc_type]
    return Verdict(
        doc_type=doc_type if sure else OTHER,
        confidence=round(margin, 4),
        review=not sure,
        evidence=tuple(shown[:_SHOWN]),
        model_version=VERSION,
    )


def _strongest(read: Sequence[Part], phrase: Phrase) -> Evidence | None:
    """The place where a phrase counts most. That it stands there often does not make it more."""
    for part in read:
        start = part.find(phrase.words)
        if start is not None:
            return Evidence(
                doc_type=phrase.doc_type,
                term=phrase.words,
                zone=part.zone,
                page=part.page,
                text=part.around(start, len(phrase.words)),
                weight=phrase.weight * part.factor,
            )
    return None


def _distinct(found: Sequence[Evidence]) -> list[Evidence]:
    """The weightiest first, without those that are a piece of another one: they say nothing new."""
    kept: list[Evidence] = []
    for one in sorted(found, key=lambda one: -one.weight):
        if not any(one.doc_type == other.doc_type and _overlap(one.term, other.term) for other in kept):
            kept.append(one)
    return kept


def _overlap(one: str, other: str) -> bool:
    one, other = one.strip("*"), other.strip("*")
    return one in other or other in one


def _scores(found: Sequence[Evidence]) -> dict[str, float]:
    scores = {phrase.doc_type: 0.0 for phrase in phrases()}
    for one in found:
        scores[one.doc_type] += one.weight
    return scores


def _decided(scores: Mapping[str, float]) -> tuple[str, float]:
    """The best of the special types, else a contract, else a letter, if it is far enough ahead."""
    special = best_type({doc_type: score for doc_type, score in scores.items() if doc_type not in GENERAL})
    guesses = [(doc_type, _margin(scores, doc_type)) for doc_type in (special, *GENERAL)]
    for doc_type, margin in guesses:
        if margin >= THRESHOLD:
            return doc_type, margin
    return max(guesses, key=lambda guess: guess[1])


def _margin(scores: Mapping[str, float], doc_type: str) -> float:
    ahead = scores[doc_type] - max(score for other, score in scores.items() if rivals(doc_type, other))
    return max(ahead, 0.0) / (scores[doc_type] + _HANDICAP)
