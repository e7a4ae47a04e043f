"""Amounts of money and percentages, in German and English spelling, as plain decimals."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import NamedTuple

from duly.apps.analyze.modules.spots import Spot
from duly.apps.analyze.modules.surroundings import Surroundings
from duly.apps.analyze.modules.units import CENTS, CODES, SCALES, Meaning, currency, either, scale
from duly.apps.analyze.text import scan

_SPACE = "[ \u00a0\u202f]"
_JOINED = "[ \u00a0\u202f-]"
# Each run of digits and separators is read once, from its start to its end.
_NUMBER = re.compile(
    rf"(?:(?<![\w.,])|(?<=EUR)|(?<=USD)|(?<=CHF)|(?<=GBP))\d++(?:[.,'\u2019]\d++|{_SPACE}\d{{3}}(?!\d))*+"
)
# As in TEUR, k€, MEUR: glued to a code or a sign, not to a word.
_GLUED = r"(?P<glued>tsd|mio|mia|mrd|[tkm])(?=(?:eur|usd|chf|gbp|jpy)(?!\w)|[€$£¥])"
_AFTER = re.compile(
    rf"(?:[.,][-\u2013\u2014]{{1,2}})?{_JOINED}?(?:{_GLUED}|(?P<scale>{either(SCALES)})(?!\w)\.?{_JOINED}?)?"
    rf"(?P<currency>{either([*CODES, *CENTS])})(?!\w)",
    re.IGNORECASE,
)
_LONG_SCALES = [name for name in SCALES if len(name) > 2]
_BEFORE = re.compile(
    rf"(?<!\w)(?:{_GLUED}|(?P<scale>{either(_LONG_SCALES)})(?!\w)\.?{_SPACE}?)?"
    rf"(?P<currency>{either(CODES)}){_SPACE}?\Z",
    re.IGNORECASE,
)
_LONGEST_BEFORE = 24
_SCALE = re.compile(rf"{_JOINED}?(?P<scale>{either(SCALES)})(?!\w)", re.IGNORECASE)
_INITIAL = re.compile(rf"{_SPACE}[km]\.{_SPACE}?\w", re.IGNORECASE)
_UP_TO = re.compile(
    rf"{_SPACE}?(?:[-\u2013\u2014]|bis|to){_SPACE}?(?P<other>\d[\d.,]{{0,20}}+)", re.IGNORECASE
)
_SHARE = re.compile(
    rf"{_SPACE}?(?:(?P<mille>‰)|%|(?:Prozent|percent|per{_SPACE}cent|v\.{_SPACE}?H\.)(?!\w))", re.IGNORECASE
)
_MINUS = "-\u2212\u2013"
_LONGEST = 30
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")


_ONE_GROUP = re.compile(r"[1-9]\d{0,2}([.,])\d{3}")
_DECIMAL_MARK = {"de": ",", "en": "."}
_LETTERS = "the letters behind it are not understood"
_MARK = "the mark may be for thousands or for decimals"


class _Place(NamedTuple):
    """Where an amount is with its currency, and what it is counted in, as written."""

    start: int
    end: int
    currency: str
    scale: str = ""
    doubt: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it means the same in every language."""
        return self.currency.lower() in CODES and not self.scale


def amounts_and_shares(text: str, asked: str = "auto") -> tuple[list[Spot], list[Spot]]:
    """Every amount of money, and every percentage."""
    surroundings = Surroundings(text, asked)
    amounts: list[Spot] = []
    shares: list[Spot] = []
    taken = 0
    for number in scan(_NUMBER, text):
        start, end = _own(number)
        if end - start > _LONGEST:
            continue
        if spot := _share(text, start, end):
            shares.append(spot)
        elif spot := _amount(text, start, end, taken, surroundings):
            amounts.append(spot)
        taken = spot.end if spot else taken
    return amounts, shares


def _own(number: re.Match[str]) -> tuple[int, int]:
    """Without a number that only stands before it: in `2026 100 €` the year is none of ours."""
    head, _, rest = re.sub(r"[\u00a0\u202f]", " ", number[0]).partition(" ")
    alone = rest and (len(head) > 3 or not head.isdigit())
    return number.start() + (len(head) + 1 if alone else 0), number.end()


def _share(text: str, start: int, end: int) -> Spot | None:
    sign = _SHARE.match(text, end)
    value = decimal(text[start:end], grouped=False) if sign else None
    if sign is None or value is None:
        return None
    minus = _is_negative(text, start)
    value = value / 10 if sign["mille"] else value
    return Spot(start - minus, sign.end(), _plain(-value if minus else value))


def _amount(text: str, start: int, end: int, taken: int, surroundings: Surroundings) -> Spot | None:
    place = _currency(text, start, end, taken)
    value = decimal(text[start:end]) if place else None
    if place is None or value is None:
        return None
    meant, problem = _meaning(place, text[start:end], lambda: surroundings.spoken(start))
    first = _is_negative(text, place.start)
    value = value.scaleb(meant.power)
    value = -value if first or _is_negative(text, start) else value
    return Spot(place.start - first, place.end, _plain(value), meant.code, problem)


def _meaning(place: _Place, number: str, spoken: Callable[[], str]) -> tuple[Meaning, str | None]:
    """What it is counted in, and what is doubtful; most amounts read the same in both languages."""
    group = _ONE_GROUP.fullmatch(number)
    language = spoken() if group or not place.is_plain else ""
    unit = currency(place.currency, language)
    by = scale(place.scale, language) if place.scale else Meaning()
    mark = _MARK if group and group[1] == _DECIMAL_MARK.get(language) else None
    return unit._replace(power=unit.power + by.power), place.doubt or by.doubt or unit.doubt or mark


def _currency(text: str, start: int, end: int, taken: int) -> _Place | None:
    """The currency after the number, or before it if no other number has taken that."""
    if after := _AFTER.match(text, end):
        return _Place(start, after.end(), after["currency"], after["glued"] or after["scale"] or "")
    left = max(taken, start - _LONGEST_BEFORE)
    before = _BEFORE.search(text[left:start].rstrip(_MINUS))
    if before is None:
        return None
    place = _Place(left + before.start(), end, before["currency"], before["glued"] or before["scale"] or "")
    return _with_scale(text, start, end, place)


def _with_scale(text: str, start: int, end: int, place: _Place) -> _Place:
    """The scale that follows, as in $3m or €3-4 Mio.; letters that are none of it make it doubtful."""
    if found := _SCALE.match(text, end):
        doubt = _LETTERS if _INITIAL.match(text, end) else None
        return place._replace(end=found.end(), scale=found["scale"], doubt=doubt)
    if text[end : end + 1].isalpha():
        return place._replace(doubt=_LETTERS)
    up_to = _UP_TO.match(text, end)
    shared = _SCALE.match(text, up_to.end()) if up_to else None
    if up_to and shared and (decimal(text[start:end]) or 0) < (decimal(up_to["other"].rstrip(".,")) or 0):
        return place._replace(scale=shared["scale"])
    return place


def _is_negative(text: str, start: int) -> bool:
    """Whether a minus stands right before; in `10-20 €` it is none."""
    return (
        text[max(0, start - 1) : start] in tuple(_MINUS) and not text[max(0, start - 2) : start - 1].isalnum()
    )


def decimal(written: str, *, grouped: bool = True) -> Decimal | None:
    """1.234,56 and 1,234.56 and 1'234.56; with `grouped`, a single group of three digits is thousands."""
    digits = re.sub(r"[ \u00a0\u202f'\u2019]", "", written)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return Decimal(digits)
    whole, _, rest = digits.rpartition(marks[-1])
    thousands = len(set(marks)) == 1 and _GROUPED.fullmatch(digits) and not digits.startswith("0")
    if thousands and (grouped or len(marks) > 1):
        return Decimal(re.sub("[.,]", "", digits))
    if len(marks) > 1 and (marks[-1] in whole or not _GROUPED.fullmatch(whole)):
        return None
    return Decimal(f"{re.sub('[.,]', '', whole)}.{rest}")


def _plain(value: Decimal) -> str:
    return format(value, "f")
