"""Normalize text for the index, and spell the words of a query in other ways."""

from __future__ import annotations

import re

_MAX_INDEXED_LENGTH = 100_000
# PostgreSQL's parser would see paths, hosts, tags and signs: "Miete/Pacht" and "RE-2024" must be two words.
_JOINTS = re.compile(r"[/\\_|•<>]+|-(?=\d)|(?<=\d)-(?=\w)|(?<=[^\W\d_])\.(?=\w)|(?<=\w)\.(?=[^\W\d_])")
# Blanks, one line end, then blanks and lines: no two of them can match the same characters, so it is linear.
_HYPHENATION = re.compile(r"(?<=[^\W\d_])[-\u2010][^\S\n]*+\n\s*+(?=[^\W\d_])")
# The index takes no longer words.
_LONG_WORD = re.compile(r"(\S{200})")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\ufeff"))
_WORD = re.compile(r"[^\W\d_]+")
_UMLAUTS = (("ä", "ae"), ("ö", "oe"), ("ü", "ue"), ("ß", "ss"))


def storable(text: str) -> str:
    """Return text that PostgreSQL accepts: without NUL and lone surrogates."""
    return text.replace("\x00", " ").encode(errors="replace").decode()


def normalize(text: str) -> str:
    """Return text that PostgreSQL's parser splits into words: hyphenated lines joined, joints opened."""
    joined = _HYPHENATION.sub("", text[:_MAX_INDEXED_LENGTH].translate(_INVISIBLE))
    return _LONG_WORD.sub(r"\1 ", _JOINTS.sub(" ", joined))


def normalize_name(name: str) -> str:
    """Return the words of a file name."""
    return normalize(name.replace("-", " "))


def split_words(text: str) -> list[str]:
    """Return the words of letters, in order."""
    return _WORD.findall(text)


def spellings(word: str) -> list[str]:
    """Return a word, its spelling without umlauts, and its spelling with umlauts."""
    lower = word.lower()
    without, with_umlauts = lower, lower
    for letter, pair in _UMLAUTS:
        without = without.replace(letter, pair)
        with_umlauts = with_umlauts.replace(pair, letter)
    if {without, with_umlauts} == {lower}:
        return [word]
    return list(dict.fromkeys([word, without, with_umlauts]))
