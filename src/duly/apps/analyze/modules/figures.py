"""Find figures: dates, amounts, percentages, email addresses and IBANs, with their positions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from duly.apps.analyze.modules.amounts import find_amounts_and_percentages
from duly.apps.analyze.modules.dates import find_dates
from duly.apps.analyze.modules.ibans import find_ibans
from duly.apps.analyze.text import excerpt, scan
from duly.apps.analyze.values import FigureMatch, Listed, Value

MAX_FIGURES_PER_KIND = 100
_MAX_TEXT_LENGTH = 100
# It starts where no such character is before, and does not backtrack: a long word is tried once.
_EMAIL = re.compile(
    r"(?<![\w.+%-])[\w.+%-]{1,64}+@(?:[^\W_](?:[\w-]{0,62})\.){1,8}[^\W\d_]{2,24}(?![\w-])",
)


class Figure(Value):
    """A figure in its normal form, as written, and its position; `problem` says why it is doubtful."""

    value: str
    text: str
    offset: int
    around: str
    currency: str | None = None
    problem: str | None = None


class Figures(Value):
    """The figures of a text by kind, in the order of the text."""

    dates: Listed[Figure]
    money: Listed[Figure]
    percentages: Listed[Figure]
    emails: Listed[Figure]
    ibans: Listed[Figure]


def find_figures(text: str, language: str = "auto") -> Figures:
    """Find all figures of a text. A part of one figure is not another figure."""
    emails = list(_find_emails(text))
    rest = _blank_out(text, emails)
    ibans = list(find_ibans(rest))
    rest = _blank_out(rest, ibans)
    dates = list(find_dates(rest))
    amounts, percentages = find_amounts_and_percentages(_blank_out(rest, dates), language)
    return Figures(
        dates=_list_figures(text, dates),
        money=_list_figures(text, amounts),
        percentages=_list_figures(text, percentages),
        emails=_list_figures(text, emails),
        ibans=_list_figures(text, ibans),
    )


def remove_figures(text: str) -> str:
    """Blank out email addresses, IBANs and dates; all other text keeps its position."""
    for find in (_find_emails, find_ibans, find_dates):
        text = _blank_out(text, find(text))
    return text


def _find_emails(text: str) -> Iterator[FigureMatch]:
    for match in scan(_EMAIL, text):
        name, _, domain = match[0].rpartition("@")
        yield FigureMatch(match.start(), match.end(), f"{name}@{domain.lower()}")


def _blank_out(text: str, matches: Iterable[FigureMatch]) -> str:
    """Replace matches by NUL characters, so that all other text keeps its position."""
    parts: list[str] = []
    end = 0
    for match in matches:
        parts += text[end : match.start], "\0" * (match.end - match.start)
        end = match.end
    return "".join([*parts, text[end:]])


def _list_figures(text: str, matches: list[FigureMatch]) -> Listed[Figure]:
    items = tuple(_to_figure(text, match) for match in matches[:MAX_FIGURES_PER_KIND])
    return Listed(items=items, left_out=len(matches) - len(items))


def _to_figure(text: str, match: FigureMatch) -> Figure:
    return Figure(
        value=match.value,
        text=" ".join(text[match.start : match.end].split())[:_MAX_TEXT_LENGTH],
        offset=match.start,
        around=excerpt(text, match.start, match.end),
        currency=match.currency,
        problem=match.problem,
    )
