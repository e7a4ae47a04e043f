"""Where in a text something was found."""

from __future__ import annotations

from typing import NamedTuple


class Spot(NamedTuple):
    """From where to where, and what it means; `problem` says why it cannot be right."""

    start: int
    end: int
    value: str
    currency: str | None = None
    problem: str | None = None
