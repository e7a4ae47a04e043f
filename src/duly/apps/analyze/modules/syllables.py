"""Syllables of German and English words: what is heard, counted by what is written."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

_CACHED = 20_000
_LONGEST = 100
"""Of what is longer, nobody counts the rest."""

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


def _counted(rule: Callable[[str], int]) -> Callable[[str], int]:
    """At least one, and each word thought about once."""
    remembered = lru_cache(_CACHED)(lambda word: max(1, rule(word)))
    return lambda word: remembered(word[:_LONGEST].lower())


@_counted
def in_german(word: str) -> int:
    """As in Ver-trags-ver-län-ge-rung."""
    return len(_NUCLEUS_DE.findall(_APART_DE.sub(r"\g<0>-", word.replace("qu", "q"))))


@_counted
def in_english(word: str) -> int:
    """As in a-gree-ment."""
    plain = word.replace("'", "").replace("\u2019", "").replace("qu", "q")
    spoken = _SILENT_EN.sub("", plain) if len(plain) > 3 else plain
    return len(_GROUP_EN.findall(_APART_EN.sub(r"\g<0>-", spoken)))
