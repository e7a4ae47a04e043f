"""Words, sentences and paragraphs, as every module counts them. Everything here is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from duly.core.redaction import printable

WORD = re.compile(r"[^\W\d_]++(?:[-'\u2019][^\W\d_]++)*+")
"""Letters, with hyphens and apostrophes inside: Müller-Straße, don't."""

_GAP = re.compile(r"\n[ \t]*+\n\s*+")
_STOP = re.compile(r"(?<![.!?…])[.!?…]++[\"'»“”)\]]{0,3}+(?=\s)")
_BEFORE = re.compile(r"\w+\Z")
_ABBREVIATIONS = """
abs al allg apr approx art aug bzgl bzw ca co dept dez dr dt eig engl evtl exkl fa feb fig fr frl geb gegr
gem ges ggf gmbh hr hrn ing inkl insb jan jr jul jun max mia mill mind mio mr mrd mrs ms nov nr okt pos prof
rd ref s sen sep sept sog sr st std str tel tsd u urspr usf verf vgl vol vs zt zus zzgl
"""
ABBREVIATED = frozenset(_ABBREVIATIONS.split())
_AROUND = 36
_WINDOW = 50_000
_LONGEST_BEFORE = 16


def windows(text: str) -> Iterator[tuple[int, int]]:
    """The text piece by piece, cut at a gap: one search through megabytes would hold up all other threads."""
    at = 0
    while at < len(text):
        end = len(text)
        if end - at > 2 * _WINDOW:
            cuts = (text.find(gap, at + _WINDOW, at + 2 * _WINDOW) for gap in ("\n\n", "\n", " "))
            end = next((cut for cut in cuts if cut > 0), at + 2 * _WINDOW)
        yield at, end
        at = end


def scan(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Every match, in order."""
    for at, end in windows(text):
        yield from pattern.finditer(text, at, end)


def words(text: str) -> list[str]:
    """The words, without numbers."""
    return [word for at, end in windows(text) for word in WORD.findall(text, at, end)]


def paragraphs(text: str) -> list[str]:
    """What blank lines separate."""
    return [part for part in _GAP.split(text.strip()) if part]


def sentences(paragraph: str) -> Iterator[str]:
    """The sentences; a heading without a full stop is one, too."""
    at = 0
    for stop in _STOP.finditer(paragraph):
        if not _goes_on(paragraph, stop):
            yield paragraph[at : stop.end()]
            at = stop.end()
    if WORD.search(paragraph, at):
        yield paragraph[at:]


def _goes_on(text: str, stop: re.Match[str]) -> bool:
    """Whether it is the dot of an abbreviation (z. B.), an initial or an ordinal (17. März)."""
    if stop[0] != ".":
        return False
    follows = text[stop.end() : stop.end() + 4].lstrip()[:1]
    before = _BEFORE.search(text[max(0, stop.start() - _LONGEST_BEFORE) : stop.start()])
    last = before[0] if before else ""
    short = len(last) == 1 or (last.isdigit() and len(last) <= 2)
    return follows.islower() or short or last.lower() in ABBREVIATED


def around(text: str, start: int, end: int) -> str:
    """A place of the text with the words about it, on one line."""
    left, right = max(0, start - _AROUND), min(len(text), end + _AROUND)
    while 0 < left < start and not text[left - 1].isspace():
        left += 1
    while end < right < len(text) and not text[right].isspace():
        right -= 1
    inner = " ".join(printable(text[left:right]).split())
    return f"{'… ' if left else ''}{inner}{' …' if right < len(text) else ''}"
