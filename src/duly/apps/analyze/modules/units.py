"""What amounts are counted in: currencies, their cents, thousands and more; in German and in English."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_CURRENCIES = {
    "EUR": "€ eur euro euros",
    "USD": "us$ $ usd us-dollar us-dollars dollar dollars",
    "GBP": "£ gbp pfund pound pounds",
    "CHF": "chf sfr. sfr franken",
    "JPY": "¥ jpy yen",
}
_HUNDREDTHS = {
    "EUR": "eurocent eurocents euro-cent euro-cents",
    "USD": "us-cent us-cents",
    "GBP": "pence",
    "CHF": "rappen",
    "": "cent cents ct",
}
_POWERS = {
    3: "k tsd tausend thousand",
    6: "m mn mio mill million millionen",
    9: "bn mrd mia milliarde milliarden billion",
    12: "bio. tn billionen trillion",
    18: "trillionen",
}
_OTHERWISE = {"billion": 12, "trillion": 18}
"""In German."""
_UNNAMED = "nobody says of which currency"
_TWO_NUMBERS = "German and English mean different numbers by this word"


def _names(table: dict[str, str]) -> dict[str, str]:
    return {name: code for code, names in table.items() for name in names.split()}


CODES = _names(_CURRENCIES)
CENTS = _names(_HUNDREDTHS)
SCALES = {name: power for power, names in _POWERS.items() for name in names.split()}


class Meaning(NamedTuple):
    """By which power of ten to count, in which currency; and the doubt about that."""

    power: int = 0
    code: str | None = None
    doubt: str | None = None


def either(names: Iterable[str]) -> str:
    """Any of these names, the longest that fits."""
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def currency(written: str, spoken: str) -> Meaning:
    """A currency or its hundredth. German has one Cent, English has many."""
    name = written.lower()
    if name in CODES:
        return Meaning(code=CODES[name])
    if CENTS[name]:
        return Meaning(-2, CENTS[name])
    german = spoken == "de" or (not spoken and written[0].isupper())
    return Meaning(-2, "EUR") if german else Meaning(-2, doubt=_UNNAMED)


def scale(written: str, spoken: str) -> Meaning:
    """Thousands and more. Where nobody can tell the language, a capital letter is a German noun."""
    name = written.lower()
    power = 3 if name == "t" else SCALES[name]
    if name not in _OTHERWISE or spoken == "en" or (not spoken and written.islower()):
        return Meaning(power)
    return Meaning(_OTHERWISE[name], doubt=None if spoken else _TWO_NUMBERS)
