"""Split text into words, sentences and paragraphs, for all modules. Everything is linear in the text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from duly.core.redaction import printable

WORD = re.compile(r"[^\W\d_]++(?>(?:[-'\u2019][^\W\d_]++)*)")
"""Letters, with hyphens and apostrophes inside: Müller-Straße, don't."""

_BLANK_LINE = re.compile(r"\n[ \t]*+\n\s*+")
_SENTENCE_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'»“”)\]]{0,3}+(?=\s)")
_LAST_WORD = re.compile(r"\w+\Z")
_ABBREVIATION_LIST = """
abs al allg apr approx art aug bzgl bzw ca co dept dez dr dt eig engl evtl exkl fa feb fig fr frl geb gegr
gem ges ggf gmbh hr hrn ing inkl insb jan jr jul jun max mia mill mind mio mr mrd mrs ms nov nr okt pos prof
rd ref s sen sep sept sog sr st std str tel tsd u urspr usf verf vgl vol vs zt zus zzgl
"""
ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_EXCERPT_MARGIN = 36
_WINDOW = 50_000
_MAX_ABBREVIATION = 16


def windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield ranges of the text, split at a gap: a search in megabytes would hold the GIL for long."""
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > 2 * _WINDOW:
            cuts = (text.find(gap, start + _WINDOW, start + 2 * _WINDOW) for gap in ("\n\n", "\n", " "))
            end = next((cut for cut in cuts if cut > 0), start + 2 * _WINDOW)
        yield start, end
        start = end


def scan(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield every match in order."""
    for start, end in windows(text):
        yield from pattern.finditer(text, start, end)


def words(text: str) -> list[str]:
    """Return the words, without numbers."""
    return [word for start, end in windows(text) for word in WORD.findall(text, start, end)]


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs; blank lines separate them."""
    return [part for part in _BLANK_LINE.split(text.strip()) if part]


def sentences(paragraph: str) -> Iterator[str]:
    """Yield the sentences; a heading without a full stop is a sentence too."""
    start = 0
    for stop in _SENTENCE_END.finditer(paragraph):
        if not _continues(paragraph, stop):
            yield paragraph[start : stop.end()]
            start = stop.end()
    if WORD.search(paragraph, start):
        yield paragraph[start:]


def _continues(text: str, stop: re.Match[str]) -> bool:
    """Return whether a dot belongs to an abbreviation (z. B.), an initial or an ordinal (17. März)."""
    if stop[0] != ".":
        return False
    next_letter = text[stop.end() : stop.end() + 4].lstrip()[:1]
    before = _LAST_WORD.search(text[max(0, stop.start() - _MAX_ABBREVIATION) : stop.start()])
    last = before[0] if before else ""
    is_short = len(last) == 1 or (last.isdigit() and len(last) <= 2)
    return next_letter.islower() or is_short or last.lower() in ABBREVIATIONS


def excerpt(text: str, start: int, end: int) -> str:
    """Return a range of the text with the words around it, on one line."""
    left, right = max(0, start - _EXCERPT_MARGIN), min(len(text), end + _EXCERPT_MARGIN)
    while 0 < left < start and not text[left - 1].isspace():
        left += 1
    while end < right < len(text) and not text[right].isspace():
        right -= 1
    inner = " ".join(printable(text[left:right]).split())
    return f"{'… ' if left else ''}{inner}{' …' if right < len(text) else ''}"
