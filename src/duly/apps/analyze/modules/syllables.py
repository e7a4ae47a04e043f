"""Count the syllables of German and English words by their spelling."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_CACHE_SIZE = 20_000
_MAX_WORD_LENGTH = 100
"""Letters that are counted."""

# A nucleus is a vowel, or two that are spoken as one.
_NUCLEUS_DE = re.compile(r"aa|ai|au|ay|äu|ee|ei|eu|ey|ie|oo|oi|ou|oy|[aeiouyäöüàáâéèêëíîïóôúû]")
_APART_DE = re.compile(
    r"^(?:ge|be)(?=e)"  # ge-ehrt, be-enden
    r"|[aeiou](?=ell)"  # aktu-ell
    r"|e(?=um)"  # Muse-um
    r"|[ln]i(?=en?$)"  # Famili-e, Lini-en
)
_GROUP_EN = re.compile(r"[aeiouyàáâäéèêëíîïóôöúûü]+")
_SILENT_EN = re.compile(
    r"(?<=[^aeiouy])(?<![^aeiouylr]l)e$"  # mak-e, whol-e; but ta-ble
    r"|(?<=[^aeiouytd])e(?=d$)"  # walk-ed; but need-ed
    r"|(?<=[^aeiouycgsxz])(?<![cs]h)(?<![^aeiouylr]l)e(?=s$)"  # mak-es; but box-es
    r"|(?<=[aeiouy][^aeiouy])e(?=(?:ment|ly|ful|less)s?$)"  # manag-ement, sol-ely
)
_APART_EN = re.compile(
    r"(?<![tscg])i(?=[ao])"  # reli-able; but na-tion
    r"|[aeiouy](?=ing$)"  # pay-ing
    r"|(?<=[aeiouy][^aeiouy])e(?=as?$)|y(?=ee)"  # ide-a, employ-ee
    r"|i(?=um|et)|u(?=al|at)|^cre(?=at)|(?<!p)e(?=o)"
)


def _cached(count: Callable[[str], int]) -> Callable[[str], int]:
    """Cache the counts of words, and count at least one syllable."""
    cached = lru_cache(_CACHE_SIZE)(lambda word: max(1, count(word)))
    return lambda word: cached(word[:_MAX_WORD_LENGTH].lower())


@_cached
def count_german(word: str) -> int:
    """Count the syllables of a German word, as in Ver-trags-ver-län-ge-rung."""
    return len(_NUCLEUS_DE.findall(_APART_DE.sub(r"\g<0>-", word.replace("qu", "q"))))


@_cached
def count_english(word: str) -> int:
    """Count the syllables of an English word, as in a-gree-ment."""
    plain = word.replace("'", "").replace("\u2019", "").replace("qu", "q")
    spoken = _SILENT_EN.sub("", plain) if len(plain) > 3 else plain
    return len(_GROUP_EN.findall(_APART_EN.sub(r"\g<0>-", spoken)))
