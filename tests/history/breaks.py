"""Ways to break each promise at one point of a valid history. Each returns the job to be reported."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from tests.history.honest import Honest

Break = Callable[[Honest], uuid.UUID | None]
BREAKS: dict[str, tuple[str, Break]] = {}


def breaks(promise: str) -> Callable[[Break], Break]:
    """Register a way to break a promise."""

    def keep(way: Break) -> Break:
        BREAKS[f"{promise}: {way.__name__}"] = (promise, way)
        return way

    return keep
