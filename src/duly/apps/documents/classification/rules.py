"""Classify a document by weighted phrases (`phrases.txt`). Pure, and linear in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import NamedTuple

from duly.apps.documents.classification.models import OTHER, Evidence, Verdict, best_type
from duly.apps.documents.classification.zones import Zone, excerpt, split_zones

VERSION = "rules-1"
THRESHOLD = 0.35
"""The least margin of a type; below it, a person has to review the document."""
_PRIOR = 10.0
"""Added to the score that a margin is relative to: a single weak phrase is no proof."""
_MAX_EVIDENCE = 12
_GENERAL_TYPES = ("contract", "letter")
"""Types that are only a form: a document of no other type may be one of them."""
_CONTAINED_TYPES: Mapping[str, frozenset[str]] = {
    "rental_contract": frozenset({"contract", "utility_bill"}),
    "insurance": frozenset({"contract", "invoice"}),
    "utility_bill": frozenset({"invoice"}),
    "reminder": frozenset({"invoice"}),
}
"""Other types whose phrases a document of a type contains: a reminder names the invoice, but is none."""


class Phrase(NamedTuple):
    """Words that speak for a type."""

    doc_type: str
    words: str
    weight: float


@cache
def phrases() -> tuple[Phrase, ...]:
    """Return the phrases of all types."""
    path = resources.files("duly.apps.documents.classification").joinpath("phrases.txt")
    return tuple(_parse_phrases(path.read_text(encoding="utf-8")))


def _parse_phrases(text: str) -> Iterator[Phrase]:
    doc_type = ""
    for line in text.splitlines():
        if line.startswith("["):
            doc_type = line.strip("[]")
        elif line and not line.startswith("#"):
            weight, _, words = line.partition(": ")
            yield from (Phrase(doc_type, phrase, float(weight)) for phrase in words.split("; "))


def classify_by_rules(pages: Sequence[str], name: str = "") -> Verdict:
    """Return the type with the best evidence, or `other` if its margin is below the threshold."""
    zones = sorted(split_zones(pages, name), key=lambda zone: -zone.weight)
    evidence = _without_overlaps([match for phrase in phrases() if (match := _best_match(zones, phrase))])
    doc_type, margin = _decide(_sum_weights(evidence))
    is_sure = margin >= THRESHOLD
    return Verdict(
        doc_type=doc_type if is_sure else OTHER,
        confidence=round(margin, 4),
        review=not is_sure,
        evidence=tuple([one for one in evidence if one.doc_type == doc_type][:_MAX_EVIDENCE]),
        model_version=VERSION,
    )


def _best_match(zones: Sequence[Zone], phrase: Phrase) -> Evidence | None:
    """Return the match in the zone of the highest weight; repetitions do not add to it."""
    for zone in zones:
        start = zone.find(phrase.words)
        if start is not None:
            return Evidence(
                doc_type=phrase.doc_type,
                term=phrase.words,
                zone=zone.name,
                page=zone.page,
                text=excerpt(zone.text, start, start + len(phrase.words)),
                weight=phrase.weight * zone.weight,
            )
    return None


def _without_overlaps(matches: Sequence[Evidence]) -> list[Evidence]:
    """Return matches by descending weight, without phrases that are part of another phrase of their type."""
    distinct: list[Evidence] = []
    for one in sorted(matches, key=lambda match: -match.weight):
        if not any(one.doc_type == other.doc_type and _overlap(one.term, other.term) for other in distinct):
            distinct.append(one)
    return distinct


def _overlap(one: str, other: str) -> bool:
    one, other = one.strip("*"), other.strip("*")
    return one in other or other in one


def _sum_weights(evidence: Sequence[Evidence]) -> dict[str, float]:
    scores = {phrase.doc_type: 0.0 for phrase in phrases()}
    for one in evidence:
        scores[one.doc_type] += one.weight
    return scores


def _decide(scores: Mapping[str, float]) -> tuple[str, float]:
    """Return the best special type, else contract, else letter: the first with a sufficient margin."""
    special = best_type(
        {doc_type: score for doc_type, score in scores.items() if doc_type not in _GENERAL_TYPES}
    )
    guesses = [(doc_type, _margin(scores, doc_type)) for doc_type in (special, *_GENERAL_TYPES)]
    for doc_type, margin in guesses:
        if margin >= THRESHOLD:
            return doc_type, margin
    return max(guesses, key=lambda guess: guess[1])


def _margin(scores: Mapping[str, float], doc_type: str) -> float:
    ahead = scores[doc_type] - max(score for other, score in scores.items() if _are_rivals(doc_type, other))
    return max(ahead, 0.0) / (scores[doc_type] + _PRIOR)


def _are_rivals(doc_type: str, other: str) -> bool:
    """Return whether phrases of the other type speak against this one. Any document may be a letter."""
    return other not in (doc_type, "letter") and other not in _CONTAINED_TYPES.get(doc_type, ())
