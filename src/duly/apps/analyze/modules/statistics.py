"""Text statistics and readability: Flesch for English, Amstad's Flesch for German."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from duly.apps.analyze.modules.syllables import count_english, count_german
from duly.apps.analyze.text import paragraphs, sentences, words
from duly.apps.analyze.values import Value

_WORDS_PER_MINUTE = 200
_MIN_WORDS = 20
_LONG_WORD = 6
_SCORE_RANGE = (0.0, 100.0)
_GRADE_RANGE = (4.0, 15.0)
_LABELS = (
    (90, "very easy"),
    (80, "easy"),
    (70, "fairly easy"),
    (60, "plain"),
    (50, "fairly difficult"),
    (30, "difficult"),
)


class Readability(Value):
    """From 0, very difficult, to 100, very easy; in German with the Wiener Sachtextformel, 4 to 15."""

    formula: Literal["flesch", "amstad"]
    score: float
    label: str
    grade: float | None = None


class TextStatistics(Value):
    """The statistics of a text. Short texts, and those in other languages, have no readability."""

    characters: int
    words: int
    sentences: int
    paragraphs: int
    lines: int
    reading_minutes: float
    readability: Readability | None = None


def text_statistics(text: str, language: str) -> TextStatistics:
    """Count characters, words, sentences, paragraphs and lines, and compute the readability."""
    found_paragraphs = paragraphs(text)
    found_words = words(text)
    sentence_count = sum(1 for paragraph in found_paragraphs for _ in sentences(paragraph))
    return TextStatistics(
        characters=len(text),
        words=len(found_words),
        sentences=sentence_count,
        paragraphs=len(found_paragraphs),
        lines=text.count("\n") + 1 if text else 0,
        reading_minutes=round(len(found_words) / _WORDS_PER_MINUTE, 1),
        readability=_readability(found_words, sentence_count, language),
    )


def _readability(text_words: Sequence[str], sentence_count: int, language: str) -> Readability | None:
    if len(text_words) < _MIN_WORDS or not sentence_count:
        return None
    if language == "en":
        score = _flesch(text_words, sentence_count)
        return Readability(formula="flesch", score=score, label=readability_label(score))
    if language == "de":
        score, grade = _amstad(text_words, sentence_count)
        return Readability(formula="amstad", score=score, label=readability_label(score), grade=grade)
    return None


def readability_label(score: float) -> str:
    """Return the description of a score."""
    return next((label for minimum, label in _LABELS if score >= minimum), "very difficult")


def _flesch(text_words: Sequence[str], sentence_count: int) -> float:
    syllables = sum(map(count_english, text_words)) / len(text_words)
    return _clamp(206.835 - 1.015 * len(text_words) / sentence_count - 84.6 * syllables, _SCORE_RANGE)


def _amstad(text_words: Sequence[str], sentence_count: int) -> tuple[float, float]:
    syllables = [count_german(word) for word in text_words]
    polysyllables = 100 * sum(count >= 3 for count in syllables) / len(text_words)
    monosyllables = 100 * sum(count == 1 for count in syllables) / len(text_words)
    long_words = 100 * sum(len(word) > _LONG_WORD for word in text_words) / len(text_words)
    length = len(text_words) / sentence_count
    grade = 0.1935 * polysyllables + 0.1672 * length + 0.1297 * long_words - 0.0327 * monosyllables - 0.875
    score = 180 - length - 58.5 * sum(syllables) / len(text_words)
    return _clamp(score, _SCORE_RANGE), _clamp(grade, _GRADE_RANGE)


def _clamp(value: float, bounds: tuple[float, float]) -> float:
    """Clamp a value to its scale: a list without full stops is one sentence of a thousand words."""
    return round(min(bounds[1], max(bounds[0], value)), 1)
