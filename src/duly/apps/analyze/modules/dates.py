"""Find dates in German and English notation, and return them in ISO form. A date has no time zone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from duly.apps.analyze.text import scan
from duly.apps.analyze.values import FigureMatch

_MONTH_NAMES_BY_NUMBER = (
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
_MONTHS = {name: number for number, names in enumerate(_MONTH_NAMES_BY_NUMBER, 1) for name in names.split()}
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
# The start of a range whose year is only at its end: 3. bis, 3.6. bis, 30 May to, June 3 to.
_RANGE_START = re.compile(
    rf"""(?<![\w.,/-])(?P<written>
      (?P<day>\d\d?)\.(?:\s?(?P<month>\d\d?)\.|\s{{1,2}}(?P<name>{_MONTH})\b\.?)?
    | (?P<cardinal>\d\d?)(?:st|nd|rd|th)?(?:\s{{1,2}}(?P<english>{_MONTH})\b)?(?!\s-\s)
    | (?P<american>{_MONTH})\b\.?\s{{1,2}}(?P<of>\d\d?){_ORDINAL}
    ){_TO}\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_MAX_RANGE_START = 32
_NUMBERED_NOUNS = """
version ver rev revision release build firmware kapitel kap ziffer ziff abschnitt abschn absatz abs artikel
art paragraph section sect sec chapter chap clause punkt pkt nr no nummer number teil part anlage anhang annex
appendix tabelle tab table abbildung abb figure fig top rn item
"""
# `v.` means vom, `v` means version.
_NUMBERING = re.compile(
    rf"(?:§|(?<!\w)(?:v|(?:{'|'.join(_NUMBERED_NOUNS.split())})(?:en|e|n|s)?[.:]?))\s{{0,2}}\Z", re.IGNORECASE
)
_MAX_NUMBERED_LENGTH = 20
_CENTURY_PIVOT = 70
"""Two digits below this mean 2000 and later."""


class _ParsedDate(NamedTuple):
    iso: str
    problem: str | None = None


def find_dates(text: str) -> Iterator[FigureMatch]:
    """Yield all dates, a month without a day as 2026-03; a day that does not exist has a problem."""
    end_of_last = 0
    for match in scan(_DATE, text):
        parsed = None if _is_numbering(text, match) else _parse(match)
        if parsed is None:
            continue
        range_start = _find_range_start(text, match, parsed.iso, end_of_last)
        if range_start is not None:
            yield range_start
        start = match.start("last") if match["first"] else match.start()
        yield FigureMatch(start, match.end(), parsed.iso, problem=parsed.problem)
        end_of_last = match.end()


def _is_numbering(text: str, match: re.Match[str]) -> bool:
    """Return whether it is the number of a section or a version."""
    start = match.start()
    before = _NUMBERING.search(text, max(0, start - _MAX_NUMBERED_LENGTH), start)
    return match.lastgroup in ("dotted", "short") and before is not None


def _find_range_start(text: str, match: re.Match[str], last: str, end_of_last: int) -> FigureMatch | None:
    """Return the start of a range, as the third of `3. bis 5. Juni 2026`."""
    if match["first"]:
        parsed = _date_before(last, int(match["first"]))
        return parsed and FigureMatch(match.start(), match.end("first"), parsed.iso, problem=parsed.problem)
    left = max(end_of_last, match.start() - _MAX_RANGE_START)
    start = _RANGE_START.search(text, left, match.start())
    if start is None or not _same_notation(start, match):
        return None
    month = start["month"] or start["name"] or start["english"] or start["american"]
    parsed = _date_before(last, int(start["day"] or start["cardinal"] or start["of"]), month)
    return parsed and FigureMatch(start.start(), start.end("written"), parsed.iso, problem=parsed.problem)


def _same_notation(start: re.Match[str], match: re.Match[str]) -> bool:
    """Return whether both ends of a range are written alike: with a dot, without one, or after the month."""
    if start["american"]:
        return match.lastgroup == "american"
    is_bare = match.lastgroup == "worded" and re.match(r"\d\d?(?!\.)", match[0]) is not None
    return match.lastgroup in ("dotted", "short", "worded") and is_bare is (start["cardinal"] is not None)


def _date_before(last: str, day: int, month: str | None = None) -> _ParsedDate | None:
    """Return a day of the same or the given month that is not after the last day."""
    year, last_month, last_day = map(int, last.split("-"))
    number = _month_number(month) if month else last_month
    if number == last_month and day > last_day:
        return None
    return _check_date(year - (number > last_month), number, day)


def _parse(written: re.Match[str]) -> _ParsedDate | None:
    """Parse a date: only the groups of its notation are set, the whole and its parts."""
    _, *parts = (part for part in written.groups() if part is not None)
    match written.lastgroup:
        case "month":
            return _ParsedDate(f"{int(parts[1])}-{_month_number(parts[0]):02}")
        case "iso":
            return _check_date(int(parts[0]), int(parts[1]), int(parts[2]))
        case "american":
            return _check_date(int(parts[-1]), _month_number(parts[0]), int(parts[-2]))
        case "slashed":
            return _parse_slashed(int(parts[0]), int(parts[1]), int(parts[2]))
        case _:
            return _check_date(_parse_year(parts[2]), _month_number(parts[1]), int(parts[0]))


def _parse_year(written: str) -> int:
    century = 0 if len(written) > 2 else 2000 if int(written) < _CENTURY_PIVOT else 1900
    return century + int(written)


def _month_number(month: str) -> int:
    return int(month) if month.isdigit() else _MONTHS[month.lower()]


def _check_date(year: int, month: int, day: int) -> _ParsedDate | None:
    if not (year >= 1000 and 1 <= month <= 12 and 1 <= day <= 31):
        return None
    try:
        return _ParsedDate(date(year, month, day).isoformat())
    except ValueError:
        return _ParsedDate(f"{year}-{month:02}-{day:02}", "no calendar has this day")


def _parse_slashed(one: int, two: int, year: int) -> _ParsedDate | None:
    """Parse 03/17/2026 as American, 17/03/2026 as British; 03/04/2026 is ambiguous."""
    if two > 12:
        return _check_date(year, one, two)
    parsed = _check_date(year, two, one)
    if parsed is None or parsed.problem or one > 12 or one == two:
        return parsed
    return _ParsedDate(parsed.iso, "day and month may be the other way round")
