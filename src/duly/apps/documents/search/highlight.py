"""Shows where in a passage it stands: a stretch or two around what was looked for."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

from duly.apps.documents.search.models import FragmentPart

_SHOWN = 220
"""Letters of a fragment, about."""
_BEFORE = 50
"""Of them before its first hit."""
_MOST = 2
_READ = 20_000
"""Letters that are looked through; passages are a twentieth of that."""
_BEGINNING = 3
"""Letters of its stem that a word has at least; of a longer one all but the last: try, tries."""
_SHORTEST_PART, _LONGEST_ENDING = 4, 3
Span = tuple[int, int]


class Mark(NamedTuple):
    """A word that may be a hit."""

    start: int
    end: int
    sure: bool
    """A compound with the stem in it; of others the server knows the stems."""


def parts(stems: Iterable[str]) -> list[str]:
    """What to look for in a text, as `marks` takes it."""
    return sorted({_part(_fold(stem)) for stem in stems})


def marks(text: str, looked_for: Sequence[str]) -> list[Mark]:
    """Words that begin like one of these, and compounds that begin or end with one."""
    folded = _fold(text[:_READ])
    found: dict[int, Mark] = {}
    for part in looked_for:
        for at, whole in _places(folded, part):
            mark = _mark(folded, at, part, whole)
            if mark and not (mark.start in found and found[mark.start].sure):
                found[mark.start] = mark
    return [found[start] for start in sorted(found)]


def hits(text: str, marked: Sequence[Mark], stems: Set[str], stemmed: Mapping[str, Set[str]]) -> list[Span]:
    """Those that are what was looked for."""
    return [(m.start, m.end) for m in marked if m.sure or stems & stemmed.get(text[m.start : m.end], set())]


def fragments(text: str, found: Sequence[Span]) -> tuple[tuple[FragmentPart, ...], ...]:
    """The stretches with most hits, in the order of the text; its beginning, if there is no hit."""
    starts = [start for start, _ in found]
    fullest = sorted(
        range(len(starts)), key=lambda i: i - bisect_left(starts, starts[i] - _BEFORE + _SHOWN, i)
    )
    shown: list[Span] = []
    for i in fullest:
        if all(end <= starts[i] - _BEFORE or starts[i] < begin - _SHOWN for begin, end in shown):
            shown.append(_window(text, starts[i]))
        if len(shown) == _MOST:
            break
    return tuple(_pieces(text, span, found) for span in sorted(shown or [_window(text, 0)]))


def _fold(text: str) -> str:
    """As stems are written: small, and without umlauts; each letter stays in its place."""
    lower = text.lower()
    if len(lower) != len(text):
        lower = "".join(letter if len(letter.lower()) > 1 else letter.lower() for letter in text)
    return lower.replace("ä", "a").replace("ö", "o").replace("ü", "u").replace("ß", "s")


def _part(stem: str) -> str:
    """As far as ss and ß are alike: `stras` is in Strasse and in Straße."""
    cut = stem.find("ss") + 1
    return stem[:cut] if cut >= _SHORTEST_PART else stem


def _places(text: str, part: str) -> Iterator[tuple[int, bool]]:
    """Where a word begins like a part, or has all of it: the latter is said."""
    beginning, long = part[: max(_BEGINNING, len(part) - 1)], len(part) >= _SHORTEST_PART
    at = text.find(beginning)
    while at >= 0:
        whole = long and text.startswith(part, at)
        if whole or not at or not text[at - 1].isalnum():
            yield at, whole
        at = text.find(beginning, at + 1)


def _mark(text: str, at: int, part: str, whole: bool) -> Mark | None:
    """The word around a place, if it begins there, or is a compound."""
    start, end = at, at + len(part) if whole else at
    while start and text[start - 1].isalnum():
        start -= 1
    while end < len(text) and text[end].isalnum():
        end += 1
    before, after = at - start, end - at - len(part)
    compound = whole and (after > _LONGEST_ENDING if not before else before > 2 and after <= _LONGEST_ENDING)
    return Mark(start, end, compound) if compound or not before else None


def _window(text: str, hit: int) -> Span:
    """A stretch around a hit that cuts no word."""
    begin, end = max(0, hit - _BEFORE), min(len(text), hit - _BEFORE + _SHOWN)
    while 0 < begin < hit and not text[begin - 1].isspace():
        begin += 1
    cut = max(text.rfind(" ", hit, end), text.rfind("\n", hit, end)) if end < len(text) else end
    return begin, cut if cut > hit + _BEFORE else end


def _pieces(text: str, window: Span, found: Sequence[Span]) -> tuple[FragmentPart, ...]:
    begin, stop = window
    pieces: list[FragmentPart] = []
    for start, end in found:
        if end > stop:
            break
        if begin <= start:
            pieces += [FragmentPart(text[begin:start]), FragmentPart(text[start:end], True)]
            begin = end
    pieces.append(FragmentPart(text[begin:stop]))
    return tuple(piece for piece in pieces if piece.text)
