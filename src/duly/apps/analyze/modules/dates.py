"""Dates as Germans and the English write them, in ISO form. A date has no time zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from duly.apps.analyze.modules.spots import Spot
from duly.apps.analyze.text import scan

_NAMES = (
    "january januar jänner jan",
    "february februar feber feb",
    "march märz maerz mrz mär mar",
    "april apr",
    "may mai",
    "june juni jun",
    "july juli jul",
    "august aug",
    "september sept sep",
    "october oktober oct okt",
    "november nov",
    "december dezember dec dez",
)
_MONTHS = {name: number for number, names in enumerate(_NAMES, 1) for name in names.split()}
MONTH_NAMES = frozenset(_MONTHS)
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_ORDINAL = r"(?:\.|st|nd|rd|th)?"
_TO = r"(?:\s{0,2}(?:bis(?:\s{1,2}zum)?|und|to|until|through|and)\s{1,2}|\s?[-\u2013\u2014]\s?)"
_DATE = re.compile(
    rf"""(?<![\w.,/])(?=[\da-z])(?:
      (?<!-)(?P<iso>(\d{{4}})-(\d\d)-(\d\d))(?!\d|-\d)
    | (?P<dotted>(\d\d?)\.\s?(\d\d?)\.\s?(\d{{4}}))(?!\w|\.\d)
    | (?P<short>(\d\d?)\.(\d\d?)\.(\d\d))(?!\w|\.\d|-[a-z])
    | (?P<slashed>(\d\d?)/(\d\d?)/(\d{{4}}))(?![\w/])
    | (?P<worded>(\d\d?){_ORDINAL}\s{{1,2}}(?:of\s)?({_MONTH})\b\.?,?\s{{1,2}}(\d{{4}}))(?!\w)
    | (?P<american>({_MONTH})\b\.?\s{{1,2}}(?:(?P<first>\d\d?){_ORDINAL}{_TO})?(?P<last>\d\d?){_ORDINAL},?
        \s{{1,2}}(\d{{4}}))(?!\w)
    | (?P<month>({_MONTH})\b\.?\s{{1,2}}((?:19|20|21)\d\d))(?!\w)
    )""",
    re.IGNORECASE | re.VERBOSE,
)
# What a date goes on from, of which the year is said only at the end: 3. bis, 3.6. bis, 30 May to, June 3 to.
_FROM = re.compile(
    rf"""(?<![\w.,/-])(?P<said>
      (?P<day>\d\d?)\.(?:\s?(?P<month>\d\d?)\.|\s{{1,2}}(?P<name>{_MONTH})\b\.?)?
    | (?P<cardinal>\d\d?)(?:st|nd|rd|th)?(?:\s{{1,2}}(?P<english>{_MONTH})\b)?(?!\s-\s)
    | (?P<american>{_MONTH})\b\.?\s{{1,2}}(?P<of>\d\d?){_ORDINAL}
    ){_TO}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_LONGEST_FROM = 32
_NUMBERED = """
version ver rev revision release build firmware kapitel kap ziffer ziff abschnitt abschn absatz abs artikel
art paragraph section sect sec chapter chap clause punkt pkt nr no nummer number teil part anlage anhang annex
appendix tabelle tab table abbildung abb figure fig top rn item
"""
# `v.` is vom, `v` is version.
_NUMBERING = re.compile(
    rf"(?:§|(?<!\w)(?:v|(?:{'|'.join(_NUMBERED.split())})(?:en|e|n|s)?[.:]?))\s{{0,2}}\Z", re.IGNORECASE
)
_LONGEST_NUMBERED = 20
_CENTURY = 70
"""Two digits below this are of the years 2000 and later."""


def dates(text: str) -> Iterator[Spot]:
    """Every date; a month without a day as 2026-03. Days that no calendar has are named as such."""
    taken = 0
    for found in scan(_DATE, text):
        read = None if _is_numbering(text, found) else _read(found)
        if read is None:
            continue
        first = _first_day(text, found, read[0], taken)
        if first is not None:
            yield first
        start = found.start("last") if found["first"] else found.start()
        yield Spot(start, found.end(), read[0], problem=read[1])
        taken = found.end()


def _is_numbering(text: str, found: re.Match[str]) -> bool:
    """Whether it is the number of a section or a version."""
    start = found.start()
    before = _NUMBERING.search(text, max(0, start - _LONGEST_NUMBERED), start)
    return found.lastgroup in ("dotted", "short") and before is not None


def _first_day(text: str, found: re.Match[str], last: str, taken: int) -> Spot | None:
    """Of `3. bis 5. Juni 2026` the third."""
    if found["first"]:
        read = _before(last, int(found["first"]))
        return read and Spot(found.start(), found.end("first"), read[0], problem=read[1])
    left = max(taken, found.start() - _LONGEST_FROM)
    begun = _FROM.search(text, left, found.start())
    if begun is None or not _fits(begun, found):
        return None
    month = begun["month"] or begun["name"] or begun["english"] or begun["american"]
    read = _before(last, int(begun["day"] or begun["cardinal"] or begun["of"]), month)
    return read and Spot(begun.start(), begun.end("said"), read[0], problem=read[1])


def _fits(begun: re.Match[str], found: re.Match[str]) -> bool:
    """A day goes on as it began: with a dot, without one, or after its month."""
    if begun["american"]:
        return found.lastgroup == "american"
    bare = found.lastgroup == "worded" and re.match(r"\d\d?(?!\.)", found[0]) is not None
    return found.lastgroup in ("dotted", "short", "worded") and bare is (begun["cardinal"] is not None)


def _before(last: str, day: int, month: str | None = None) -> tuple[str, str | None] | None:
    """A day of the same month, or of the month that is said; not after the last one."""
    year, same_month, last_day = map(int, last.split("-"))
    number = _number(month) if month else same_month
    if number == same_month and day > last_day:
        return None
    return _iso(year - (number > same_month), number, day)


def _read(found: re.Match[str]) -> tuple[str, str | None] | None:
    """Of all groups only those of its own kind are there: the whole, and its parts."""
    _, *parts = (part for part in found.groups() if part is not None)
    match found.lastgroup:
        case "month":
            return f"{int(parts[1])}-{_number(parts[0]):02}", None
        case "iso":
            return _iso(int(parts[0]), int(parts[1]), int(parts[2]))
        case "american":
            return _iso(int(parts[-1]), _number(parts[0]), int(parts[-2]))
        case "slashed":
            return _slashed(int(parts[0]), int(parts[1]), int(parts[2]))
        case _:
            return _iso(_year(parts[2]), _number(parts[1]), int(parts[0]))


def _year(written: str) -> int:
    century = 0 if len(written) > 2 else 2000 if int(written) < _CENTURY else 1900
    return century + int(written)


def _number(month: str) -> int:
    return int(month) if month.isdigit() else _MONTHS[month.lower()]


def _iso(year: int, month: int, day: int) -> tuple[str, str | None] | None:
    if not (year >= 1000 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    try:
        return date(year, month, day).isoformat(), None
    except ValueError:
        return f"{year}-{month:02}-{day:02}", "no calendar has this day"


def _slashed(one: int, two: int, year: int) -> tuple[str, str | None] | None:
    """03/17/2026 is American, 17/03/2026 British; of 03/04/2026 nobody knows."""
    if two > 12:
        return _iso(year, one, two)
    read = _iso(year, two, one)
    doubtful = read is not None and read[1] is None and one <= 12 and one != two
    return (read[0], "day and month may be the other way round") if read and doubtful else read
