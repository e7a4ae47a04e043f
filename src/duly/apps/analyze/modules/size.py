"""How much there is to read, and how hard it is: Flesch for English, Amstad's Flesch for German."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from duly.apps.analyze.modules.syllables import in_english, in_german
from duly.apps.analyze.text import paragraphs, sentences, words
from duly.apps.analyze.values import Value

WORDS_A_MINUTE = 200
_ENOUGH_WORDS = 20
_LONG_WORD = 6
_SCORES = (0.0, 100.0)
_GRADES = (4.0, 15.0)
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


class SizeFound(Value):
    """The size of a text. Short texts, and those in other languages, have no readability."""

    characters: int
    words: int
    sentences: int
    paragraphs: int
    lines: int
    reading_minutes: float
    readability: Readability | None = None


def measure(text: str, language: str) -> SizeFound:
    """Count, and judge by the rules of the language."""
    parts = paragraphs(text)
    found = words(text)
    said = sum(1 for part in parts for _ in sentences(part))
    return SizeFound(
        characters=len(text),
        words=len(found),
        sentences=said,
        paragraphs=len(parts),
        lines=text.count("\n") + 1 if text else 0,
        reading_minutes=round(len(found) / WORDS_A_MINUTE, 1),
        readability=readability(found, said, language),
    )


def readability(found: Sequence[str], said: int, language: str) -> Readability | None:
    """How hard so many sentences of these words are; None if that cannot be said."""
    if len(found) < _ENOUGH_WORDS or not said:
        return None
    if language == "en":
        score = _flesch(found, said)
        return Readability(formula="flesch", score=score, label=label(score))
    if language == "de":
        score, grade = _amstad(found, said)
        return Readability(formula="amstad", score=score, label=label(score), grade=grade)
    return None


def label(score: float) -> str:
    """The score in words."""
    return next((name for least, name in _LABELS if score >= least), "very difficult")


def _flesch(found: Sequence[str], said: int) -> float:
    syllables = sum(map(in_english, found)) / len(found)
    return _within(206.835 - 1.015 * len(found) / said - 84.6 * syllables, *_SCORES)


def _amstad(found: Sequence[str], said: int) -> tuple[float, float]:
    counts = [in_german(word) for word in found]
    many = 100 * sum(count >= 3 for count in counts) / len(found)
    one = 100 * sum(count == 1 for count in counts) / len(found)
    long = 100 * sum(len(word) > _LONG_WORD for word in found) / len(found)
    length = len(found) / said
    grade = 0.1935 * many + 0.1672 * length + 0.1297 * long - 0.0327 * one - 0.875
    score = 180 - length - 58.5 * sum(counts) / len(found)
    return _within(score, *_SCORES), _within(grade, *_GRADES)


def _within(value: float, least: float, most: float) -> float:
    """On its scale: a list without full stops is one sentence of a thousand words."""
    return round(min(most, max(least, value)), 1)
