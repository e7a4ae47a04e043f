"""The keys under which a job may count what it did, so that counts of different jobs can be compared."""

from __future__ import annotations

import math
from collections.abc import Mapping

from duly.model.errors import ContractError

SUMMARY_KEYS = frozenset(
    {
        "total",
        "processed",
        "succeeded",
        "failed",
        "skipped",
        "created",
        "updated",
        "deleted",
        "unchanged",
        "imported",
        "exported",
        "sent",
        "warnings",
        "errors",
        "pages",
        "chunks",
        "bytes",
    }
)
"""The catalogue. What is not in it is refused: a count under a private name is a count nobody finds."""


def checked_counts(counts: Mapping[str, float]) -> dict[str, float]:
    """The counts, if each is a number under a key of the catalogue."""
    for key, value in counts.items():
        if key not in SUMMARY_KEYS:
            raise ContractError(
                f"{key!r} is not in the catalogue",
                field="summary_counts",
                fix=f"one of {sorted(SUMMARY_KEYS)}",
            )
        if type(value) not in (int, float) or not math.isfinite(value):
            raise ContractError(
                f"{value!r} is no number", field=f"summary_counts.{key}", fix="count in numbers"
            )
    return dict(counts)
