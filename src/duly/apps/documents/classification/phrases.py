"""The words by which types are known, as `phrases.txt` lists them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

GENERAL = ("contract", "letter")
"""Types that are only a form: what is nothing else may be one of them."""
WITHIN: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "rental_contract": frozenset({"contract", "utility_bill"}),
        "insurance": frozenset({"contract", "invoice"}),
        "utility_bill": frozenset({"invoice"}),
        "reminder": frozenset({"invoice"}),
    }
)
"""What else a type has the words of: a reminder names the invoice, and is none."""


class Phrase(NamedTuple):
    """Words that speak for a type."""

    doc_type: str
    words: str
    weight: float


@cache
def phrases() -> tuple[Phrase, ...]:
    """All of them."""
    path = resources.files("duly.apps.documents.classification").joinpath("phrases.txt")
    return tuple(_read(path.read_text(encoding="utf-8")))


def _read(text: str) -> Iterator[Phrase]:
    doc_type = ""
    for line in text.splitlines():
        if line.startswith("["):
            doc_type = line.strip("[]")
        elif line and not line.startswith("#"):
            weight, _, words = line.partition(": ")
            yield from (Phrase(doc_type, one, float(weight)) for one in words.split("; "))


def rivals(doc_type: str, other: str) -> bool:
    """Whether words for the other speak against this one. Anything may be written as a letter."""
    return other not in (doc_type, "letter") and other not in WITHIN.get(doc_type, ())
