"""Parts of German compounds: whoever looks for Vertrag finds Mietvertrag. By HanTa, if it is installed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from duly.apps.documents.search.normalize import words

_SHORTEST = 9
"""Letters of a word that is looked at; its parts have more than three."""
_LONGEST = 60
_KINDS = ("NN", "NE", "V", "ADJ")
_lock = threading.Lock()


def installed() -> bool:
    """Whether compounds are taken apart. The first time it takes a while: the model is read."""
    return _tagger() is not None


def loaded() -> bool:
    """Whether that was asked before."""
    return _tagger.cache_info().currsize > 0


def parts_of(text: str) -> str:
    """The parts of all nouns of a text that are compounds, in order."""
    if not installed():
        return ""
    nouns = (word for word in words(text) if len(word) >= _SHORTEST and word[0].isupper())
    return " ".join(part for noun in nouns for part in split(noun.capitalize()))


def nouns(asked: Sequence[str]) -> list[int]:
    """Places of words that may be nouns: those with a capital, unless whoever asks takes no such trouble."""
    careful = any(word[0].isupper() for word in asked[1:])
    return [place for place, word in enumerate(asked) if word[0].isupper() or not careful]


@lru_cache(maxsize=200_000)
def split(word: str) -> tuple[str, ...]:
    """The parts of a noun, if it is a compound."""
    tagger = _tagger()
    if tagger is None or not _SHORTEST <= len(word) <= _LONGEST:
        return ()
    with _lock:
        _, morphs, _ = tagger.analyze(word, taglevel=3, pos="NN")
    if len(morphs) < 2:
        return ()
    return tuple(part for part, kind in morphs if len(part) > 3 and str(kind).startswith(_KINDS))


@cache
def _tagger() -> Any | None:
    try:
        from HanTa.HanoverTagger import HanoverTagger  # type: ignore[import-untyped]
    except ImportError:
        return None
    return HanoverTagger("morphmodel_ger.pgz")
