"""Select the fragments of a hit: one or two parts of its text around the matching words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from duly.apps.documents.search.models import FragmentPart

_FRAGMENT_LENGTH = 220
_CONTEXT_BEFORE = 50
"""Characters of a fragment before its first match."""
_MAX_FRAGMENTS = 2
_MAX_SEARCHED = 20_000
"""Characters that are searched; passages have a twentieth of that."""
_MIN_PREFIX = 3
"""Letters of a stem that a word must start with; of a longer stem all but the last: try, tries."""
_MIN_COMPOUND_PART, _MAX_ENDING = 4, 3
Range = tuple[int, int]


class CandidateWord(NamedTuple):
    """A word that may match."""

    start: int
    end: int
    is_compound: bool
    """Whether it is a compound that contains the stem; of other words PostgreSQL knows the stems."""


def search_parts(stems: Iterable[str]) -> list[str]:
    """Return the strings to search for, as `find_candidates` expects them."""
    return sorted({_before_double_s(_fold(stem)) for stem in stems})


def find_candidates(text: str, parts: Sequence[str]) -> list[CandidateWord]:
    """Return words that start like one of the parts, and compounds that start or end with one."""
    folded = _fold(text[:_MAX_SEARCHED])
    by_start: dict[int, CandidateWord] = {}
    for part in parts:
        for index, is_whole in _occurrences(folded, part):
            word = _surrounding_word(folded, index, part, is_whole)
            if word and not (word.start in by_start and by_start[word.start].is_compound):
                by_start[word.start] = word
    return [by_start[start] for start in sorted(by_start)]


def filter_matches(
    text: str, candidates: Sequence[CandidateWord], stems: Set[str], stems_of: Mapping[str, Set[str]]
) -> list[Range]:
    """Return the ranges of the candidates that have one of the stems."""
    return [
        (word.start, word.end)
        for word in candidates
        if word.is_compound or stems & stems_of.get(text[word.start : word.end], set())
    ]


def select_fragments(text: str, matches: Sequence[Range]) -> tuple[tuple[FragmentPart, ...], ...]:
    """Return the fragments with the most matches in text order; without matches, the beginning."""
    starts = [start for start, _ in matches]
    by_matches = sorted(
        range(len(starts)),
        key=lambda i: i - bisect_left(starts, starts[i] - _CONTEXT_BEFORE + _FRAGMENT_LENGTH, i),
    )
    windows: list[Range] = []
    for i in by_matches:
        start = starts[i]
        if all(end <= start - _CONTEXT_BEFORE or start < begin - _FRAGMENT_LENGTH for begin, end in windows):
            windows.append(_window(text, start))
        if len(windows) == _MAX_FRAGMENTS:
            break
    return tuple(_mark_matches(text, window, matches) for window in sorted(windows or [_window(text, 0)]))


def _fold(text: str) -> str:
    """Fold text like stems, to lower case without umlauts; each letter keeps its position."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in text)
    return lower.replace("ä", "a").replace("ö", "o").replace("ü", "u").replace("ß", "s")


def _before_double_s(stem: str) -> str:
    """Cut a stem where ss and ß differ: `stras` is in Strasse and in Straße."""
    end = stem.find("ss") + 1
    return stem[:end] if end >= _MIN_COMPOUND_PART else stem


def _occurrences(text: str, part: str) -> Iterator[tuple[int, bool]]:
    """Yield the positions of a part: of words that start like it (False), and of all of it (True)."""
    prefix, can_be_inside = part[: max(_MIN_PREFIX, len(part) - 1)], len(part) >= _MIN_COMPOUND_PART
    index = text.find(prefix)
    while index >= 0:
        is_whole = can_be_inside and text.startswith(part, index)
        if is_whole or not index or not text[index - 1].isalnum():
            yield index, is_whole
        index = text.find(prefix, index + 1)


def _surrounding_word(text: str, index: int, part: str, is_whole: bool) -> CandidateWord | None:
    """Return the word around a position if it starts there, or is a compound."""
    start, end = index, index + len(part) if is_whole else index
    while start and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    before, after = index - start, end - index - len(part)
    is_compound = is_whole and (after > _MAX_ENDING if not before else before > 2 and after <= _MAX_ENDING)
    return CandidateWord(start, end, is_compound) if is_compound or not before else None


def _window(text: str, match: int) -> Range:
    """Return the range of whole words around a match."""
    begin = max(0, match - _CONTEXT_BEFORE)
    end = min(len(text), match - _CONTEXT_BEFORE + _FRAGMENT_LENGTH)
    while 0 < begin < match and not text[begin - 1].isspace():
        begin += 1
    cut = max(text.rfind(" ", match, end), text.rfind("\n", match, end)) if end < len(text) else end
    return begin, cut if cut > match + _CONTEXT_BEFORE else end


def _mark_matches(text: str, window: Range, matches: Sequence[Range]) -> tuple[FragmentPart, ...]:
    begin, stop = window
    parts: list[FragmentPart] = []
    for start, end in matches:
        if end > stop:
            break
        if begin <= start:
            parts += [FragmentPart(text[begin:start]), FragmentPart(text[start:end], True)]
            begin = end
    parts.append(FragmentPart(text[begin:stop]))
    return tuple(part for part in parts if part.text)
