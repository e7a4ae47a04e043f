"""Split German compounds, so that Vertrag finds Mietvertrag. By HanTa, if it is installed."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

from duly.apps.documents.search.normalize import split_words

_MIN_LENGTH, _MAX_LENGTH = 9, 60
_MIN_PART_LENGTH = 4
_PARTS_OF_SPEECH = ("NN", "NE", "V", "ADJ")
_tagger_lock = threading.Lock()


def is_installed() -> bool:
    """Return whether HanTa is installed. The first call loads its model, which takes a while."""
    return _tagger() is not None


def is_loaded() -> bool:
    """Return whether `is_installed` was called before."""
    return _tagger.cache_info().currsize > 0


def compound_parts(text: str) -> str:
    """Return the parts of all compound nouns of a text, in order."""
    if not is_installed():
        return ""
    nouns = (word for word in split_words(text) if len(word) >= _MIN_LENGTH and word[0].isupper())
    return " ".join(part for noun in nouns for part in split_compound(noun.capitalize()))


def noun_positions(words: Sequence[str]) -> list[int]:
    """Return the positions of possible nouns: capitalized words, or all if the query has no capitals."""
    uses_capitals = any(word[0].isupper() for word in words[1:])
    return [position for position, word in enumerate(words) if word[0].isupper() or not uses_capitals]


@lru_cache(maxsize=200_000)
def split_compound(word: str) -> tuple[str, ...]:
    """Return the parts of a noun if it is a compound."""
    tagger = _tagger()
    if tagger is None or not _MIN_LENGTH <= len(word) <= _MAX_LENGTH:
        return ()
    with _tagger_lock:
        _, morphs, _ = tagger.analyze(word, taglevel=3, pos="NN")
    if len(morphs) < 2:
        return ()
    return tuple(
        part
        for part, tag in morphs
        if len(part) >= _MIN_PART_LENGTH and str(tag).startswith(_PARTS_OF_SPEECH)
    )


@cache
def _tagger() -> Any | None:
    try:
        from HanTa.HanoverTagger import HanoverTagger  # type: ignore[import-untyped]
    except ImportError:
        return None
    return HanoverTagger("morphmodel_ger.pgz")
