"""The base of all results: frozen values, lists with a limit, and matches of figures."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any, Final, Generic, NamedTuple, Self, TypeVar

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION: Final = 1
"""The version of partial results, summary and report; incremented when a field changes its meaning."""

T = TypeVar("T")


class Value(BaseModel):
    """A result. Equal texts give equal results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def as_json(self) -> dict[str, Any]:
        """The stored form, without null values."""
        return self.model_dump(mode="json", exclude_none=True)


class Listed(Value, Generic[T]):
    """The first items of a list, and the number of the others."""

    items: tuple[T, ...] = ()
    left_out: int = 0

    @property
    def total(self) -> int:
        """The number of all items."""
        return len(self.items) + self.left_out

    @classmethod
    def first(cls, limit: int, values: Iterable[T]) -> Self:
        """Return the first values, and count the others."""
        rest = iter(values)
        return cls(items=tuple(islice(rest, limit)), left_out=sum(1 for _ in rest))

    def truncate(self, limit: int) -> Listed[T]:
        """Return a list of at most `limit` items with the same total."""
        items = self.items[:limit]
        return self.model_copy(update={"items": items, "left_out": self.total - len(items)})


class FigureMatch(NamedTuple):
    """The range of a figure and its value; `problem` says why it is doubtful."""

    start: int
    end: int
    value: str
    currency: str | None = None
    problem: str | None = None
