"""Find amounts of money and percentages in German and English notation, as plain decimals."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import NamedTuple

from duly.apps.analyze.modules.stopwords import LocalLanguage
from duly.apps.analyze.text import scan
from duly.apps.analyze.values import FigureMatch

_CURRENCY_NAMES = {
    "EUR": "€ eur euro euros",
    "USD": "us$ $ usd us-dollar us-dollars dollar dollars",
    "GBP": "£ gbp pfund pound pounds",
    "CHF": "chf sfr. sfr franken",
    "JPY": "¥ jpy yen",
}
_CENT_NAMES = {
    "EUR": "eurocent eurocents euro-cent euro-cents",
    "USD": "us-cent us-cents",
    "GBP": "pence",
    "CHF": "rappen",
    "": "cent cents ct",
}
_SCALE_NAMES = {
    3: "k tsd tausend thousand",
    6: "m mn mio mill million millionen",
    9: "bn mrd mia milliarde milliarden billion",
    12: "bio. tn billionen trillion",
    18: "trillionen",
}
_GERMAN_SCALES = {"billion": 12, "trillion": 18}
"""Powers that differ from the English ones."""


def _by_name(table: dict[str, str]) -> dict[str, str]:
    return {name: code for code, names in table.items() for name in names.split()}


def _any_of(names: Iterable[str]) -> str:
    """Return a pattern for any of the names, the longest first."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_CURRENCIES = _by_name(_CURRENCY_NAMES)
_CENTS = _by_name(_CENT_NAMES)
_SCALES = {name: power for power, names in _SCALE_NAMES.items() for name in names.split()}

_SPACE = "[ \u00a0\u202f]"
_JOINED = "[ \u00a0\u202f-]"
# Without backtracking: each run of digits and separators is read once.
_NUMBER = re.compile(
    rf"(?:(?<![\w.,])|(?<=EUR)|(?<=USD)|(?<=CHF)|(?<=GBP))\d++(?>(?:[.,'\u2019]\d++|{_SPACE}\d{{3}}(?!\d))*)"
)
# As in TEUR, k€, MEUR: before a code or a sign, not before a word.
_GLUED = r"(?P<glued>tsd|mio|mia|mrd|[tkm])(?=(?:eur|usd|chf|gbp|jpy)(?!\w)|[€$£¥])"
_SUFFIX = re.compile(
    rf"(?:[.,][-\u2013\u2014]{{1,2}})?{_JOINED}?(?:{_GLUED}|(?P<scale>{_any_of(_SCALES)})(?!\w)\.?{_JOINED}?)?"
    rf"(?P<currency>{_any_of([*_CURRENCIES, *_CENTS])})(?!\w)",
    re.IGNORECASE,
)
_LONG_SCALES = [name for name in _SCALES if len(name) > 2]
_PREFIX = re.compile(
    rf"(?<!\w)(?:{_GLUED}|(?P<scale>{_any_of(_LONG_SCALES)})(?!\w)\.?{_SPACE}?)?"
    rf"(?P<currency>{_any_of(_CURRENCIES)}){_SPACE}?\Z",
    re.IGNORECASE,
)
_MAX_PREFIX_LENGTH = 24
_SCALE = re.compile(rf"{_JOINED}?(?P<scale>{_any_of(_SCALES)})(?!\w)", re.IGNORECASE)
_INITIAL = re.compile(rf"{_SPACE}[km]\.{_SPACE}?\w", re.IGNORECASE)
_RANGE_END = re.compile(
    rf"{_SPACE}?(?:[-\u2013\u2014]|bis|to){_SPACE}?(?P<other>\d[\d.,]{{0,20}}+)", re.IGNORECASE
)
_PERCENT = re.compile(
    rf"{_SPACE}?(?:(?P<mille>‰)|%|(?:Prozent|percent|per{_SPACE}cent|v\.{_SPACE}?H\.)(?!\w))", re.IGNORECASE
)
_MINUS = "-\u2212\u2013"
_MAX_NUMBER_LENGTH = 30
_GROUPED = re.compile(r"\d{1,3}(?:[.,]\d{3})+")
_ONE_GROUP = re.compile(r"[1-9]\d{0,2}([.,])\d{3}")
_DECIMAL_MARKS = {"de": ",", "en": "."}

_UNKNOWN_LETTERS = "the letters behind it are not understood"
_AMBIGUOUS_MARK = "the mark may be for thousands or for decimals"
_UNKNOWN_CURRENCY = "the currency is not stated"
_AMBIGUOUS_SCALE = "German and English mean different numbers by this word"


class _Unit(NamedTuple):
    """The power of ten and the currency of an amount, and a problem with them."""

    power: int = 0
    currency: str | None = None
    problem: str | None = None


class _WrittenAmount(NamedTuple):
    """The range of an amount with its currency, and its currency and scale as written."""

    start: int
    end: int
    currency: str
    scale: str = ""
    problem: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether it means the same in every language."""
        return self.currency.lower() in _CURRENCIES and not self.scale


def find_amounts_and_percentages(
    text: str, language: str = "auto"
) -> tuple[list[FigureMatch], list[FigureMatch]]:
    """Return all amounts of money, and all percentages."""
    local_language = LocalLanguage(text, language)
    amounts: list[FigureMatch] = []
    percentages: list[FigureMatch] = []
    end_of_last = 0
    for number in scan(_NUMBER, text):
        start, end = _skip_leading_number(number)
        if end - start > _MAX_NUMBER_LENGTH:
            continue
        if match := _match_percentage(text, start, end):
            percentages.append(match)
        elif match := _match_amount(text, start, end, end_of_last, local_language):
            amounts.append(match)
        end_of_last = match.end if match else end_of_last
    return amounts, percentages


def _skip_leading_number(number: re.Match[str]) -> tuple[int, int]:
    """Return the range without a separate number before it, as the year of `2026 100 €`."""
    head, _, rest = re.sub(r"[\u00a0\u202f]", " ", number[0]).partition(" ")
    is_separate = rest and (len(head) > 3 or not head.isdigit())
    return number.start() + (len(head) + 1 if is_separate else 0), number.end()


def _match_percentage(text: str, start: int, end: int) -> FigureMatch | None:
    sign = _PERCENT.match(text, end)
    value = _parse_decimal(text[start:end], allow_thousands=False) if sign else None
    if sign is None or value is None:
        return None
    is_negative = _is_negative(text, start)
    value = value / 10 if sign["mille"] else value
    return FigureMatch(start - is_negative, sign.end(), format(-value if is_negative else value, "f"))


def _match_amount(
    text: str, start: int, end: int, end_of_last: int, local_language: LocalLanguage
) -> FigureMatch | None:
    written = _find_currency(text, start, end, end_of_last)
    value = _parse_decimal(text[start:end]) if written else None
    if written is None or value is None:
        return None
    unit, problem = _interpret(written, text[start:end], lambda: local_language.at(start))
    has_leading_minus = _is_negative(text, written.start)
    value = value.scaleb(unit.power)
    value = -value if has_leading_minus or _is_negative(text, start) else value
    return FigureMatch(
        written.start - has_leading_minus, written.end, format(value, "f"), unit.currency, problem
    )


def _interpret(
    written: _WrittenAmount, number: str, local_language: Callable[[], str]
) -> tuple[_Unit, str | None]:
    """Return the unit of an amount and its problem; the language is detected only if it matters."""
    one_group = _ONE_GROUP.fullmatch(number)
    language = local_language() if one_group or not written.is_plain else ""
    unit = _currency_unit(written.currency, language)
    scale = _scale_unit(written.scale, language) if written.scale else _Unit()
    is_ambiguous = one_group and one_group[1] == _DECIMAL_MARKS.get(language)
    problem = written.problem or scale.problem or unit.problem or (_AMBIGUOUS_MARK if is_ambiguous else None)
    return unit._replace(power=unit.power + scale.power), problem


def _currency_unit(written: str, language: str) -> _Unit:
    """Return the unit of a currency or its hundredth. "Cent" is one currency's in German, many in English."""
    name = written.lower()
    if name in _CURRENCIES:
        return _Unit(currency=_CURRENCIES[name])
    if _CENTS[name]:
        return _Unit(-2, _CENTS[name])
    is_german = language == "de" or (not language and written[0].isupper())
    return _Unit(-2, "EUR") if is_german else _Unit(-2, problem=_UNKNOWN_CURRENCY)


def _scale_unit(written: str, language: str) -> _Unit:
    """Return the unit of thousands, millions and so on. In an unknown language, a capital means German."""
    name = written.lower()
    power = 3 if name == "t" else _SCALES[name]
    if name not in _GERMAN_SCALES or language == "en" or (not language and written.islower()):
        return _Unit(power)
    return _Unit(_GERMAN_SCALES[name], problem=None if language else _AMBIGUOUS_SCALE)


def _find_currency(text: str, start: int, end: int, end_of_last: int) -> _WrittenAmount | None:
    """Return the currency after a number, or before it if it belongs to no other number."""
    if suffix := _SUFFIX.match(text, end):
        scale = suffix["glued"] or suffix["scale"] or ""
        return _WrittenAmount(start, suffix.end(), suffix["currency"], scale)
    left = max(end_of_last, start - _MAX_PREFIX_LENGTH)
    prefix = _PREFIX.search(text[left:start].rstrip(_MINUS))
    if prefix is None:
        return None
    scale = prefix["glued"] or prefix["scale"] or ""
    written = _WrittenAmount(left + prefix.start(), end, prefix["currency"], scale)
    return _add_scale(text, start, end, written)


def _add_scale(text: str, start: int, end: int, written: _WrittenAmount) -> _WrittenAmount:
    """Add the scale after a number, as in $3m or €3-4 Mio.; other letters are a problem."""
    if scale := _SCALE.match(text, end):
        problem = _UNKNOWN_LETTERS if _INITIAL.match(text, end) else None
        return written._replace(end=scale.end(), scale=scale["scale"], problem=problem)
    if text[end : end + 1].isalpha():
        return written._replace(problem=_UNKNOWN_LETTERS)
    range_end = _RANGE_END.match(text, end)
    scale = _SCALE.match(text, range_end.end()) if range_end else None
    if range_end and scale:
        last = _parse_decimal(range_end["other"].rstrip(".,"))
        if (_parse_decimal(text[start:end]) or 0) < (last or 0):
            return written._replace(scale=scale["scale"])
    return written


def _is_negative(text: str, start: int) -> bool:
    """Return whether a minus is right before; that of `10-20 €` is a range."""
    return (
        text[max(0, start - 1) : start] in tuple(_MINUS) and not text[max(0, start - 2) : start - 1].isalnum()
    )


def _parse_decimal(written: str, *, allow_thousands: bool = True) -> Decimal | None:
    """Parse 1.234,56, 1,234.56 or 1'234.56; `allow_thousands` reads one group of three as thousands."""
    digits = re.sub(r"[ \u00a0\u202f'\u2019]", "", written)
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return Decimal(digits)
    whole, _, fraction = digits.rpartition(marks[-1])
    is_grouped = len(set(marks)) == 1 and _GROUPED.fullmatch(digits) and not digits.startswith("0")
    if is_grouped and (allow_thousands or len(marks) > 1):
        return Decimal(re.sub("[.,]", "", digits))
    if len(marks) > 1 and (marks[-1] in whole or not _GROUPED.fullmatch(whole)):
        return None
    return Decimal(f"{re.sub('[.,]', '', whole)}.{fraction}")
