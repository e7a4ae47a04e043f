"""What can be looked up or checked: dates, amounts, percentages, e-mail addresses, IBANs; and where."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from duly.apps.analyze.modules.dates import dates
from duly.apps.analyze.modules.ibans import ibans
from duly.apps.analyze.modules.numbers import amounts_and_shares
from duly.apps.analyze.modules.spots import Spot
from duly.apps.analyze.text import around, scan
from duly.apps.analyze.values import Listed, Value

MOST_OF_A_KIND = 100
_LONGEST = 100
# It starts where no such character is before, and gives nothing back: a long word is tried once.
_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]{1,64}+@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,24}(?![\w-])",
)


class Figure(Value):
    """One find: as it is written, in its normal form, and where; `problem` says why it cannot be right."""

    value: str
    text: str
    offset: int
    around: str
    currency: str | None = None
    problem: str | None = None


class FiguresFound(Value):
    """Everything that was found, by kind, in the order of the text."""

    dates: Listed[Figure]
    money: Listed[Figure]
    percentages: Listed[Figure]
    emails: Listed[Figure]
    ibans: Listed[Figure]


def figures(text: str, asked: str = "auto") -> FiguresFound:
    """All figures of a text. What is part of one is not taken for another."""
    emails = list(_emails(text))
    rest = _without(text, emails)
    accounts = list(ibans(rest))
    rest = _without(rest, accounts)
    days = list(dates(rest))
    amounts, shares = amounts_and_shares(_without(rest, days), asked)
    return FiguresFound(
        dates=_listed(text, days),
        money=_listed(text, amounts),
        percentages=_listed(text, shares),
        emails=_listed(text, emails),
        ibans=_listed(text, accounts),
    )


def prose(text: str) -> str:
    """The text without addresses, accounts and dates, and every other place where it was."""
    for find in (_emails, ibans, dates):
        text = _without(text, find(text))
    return text


def _emails(text: str) -> Iterator[Spot]:
    for found in scan(_EMAIL, text):
        name, _, domain = found[0].rpartition("@")
        yield Spot(found.start(), found.end(), f"{name}@{domain.lower()}")


def _without(text: str, spots: Iterable[Spot]) -> str:
    """The text with these places empty, and every other one where it was."""
    kept: list[str] = []
    at = 0
    for spot in spots:
        kept += text[at : spot.start], "\0" * (spot.end - spot.start)
        at = spot.end
    return "".join([*kept, text[at:]])


def _listed(text: str, spots: list[Spot]) -> Listed[Figure]:
    shown = tuple(_figure(text, spot) for spot in spots[:MOST_OF_A_KIND])
    return Listed(items=shown, left_out=len(spots) - len(shown))


def _figure(text: str, spot: Spot) -> Figure:
    return Figure(
        value=spot.value,
        text=" ".join(text[spot.start : spot.end].split())[:_LONGEST],
        offset=spot.start,
        around=around(text, spot.start, spot.end),
        currency=spot.currency,
        problem=spot.problem,
    )
