"""A figure that was found in a text."""

from __future__ import annotations

from typing import NamedTuple


class FigureMatch(NamedTuple):
    """The range of a figure and its value; `problem` says why it is doubtful."""

    start: int
    end: int
    value: str
    currency: str | None = None
    problem: str | None = None
