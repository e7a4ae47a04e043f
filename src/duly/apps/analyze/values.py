"""What every result is made of: frozen values, and lists that say what they left out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, Final, Generic, Self, TypeVar

from pydantic import BaseModel, ConfigDict

SCHEMA_VERSION: Final = 1
"""The shape of partial results, summary and report; counted up when a field changes its meaning."""

T = TypeVar("T")


class Value(BaseModel):
    """A result. Equal texts give equal results."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @property
    def as_json(self) -> dict[str, Any]:
        """As it is stored: without what does not apply."""
        return self.model_dump(mode="json", exclude_none=True)


class Listed(Value, Generic[T]):
    """The first of many, and how many more there were."""

    items: tuple[T, ...] = ()
    left_out: int = 0

    @property
    def total(self) -> int:
        """How many there were."""
        return len(self.items) + self.left_out

    @classmethod
    def first(cls, most: int, of: Iterable[T]) -> Self:
        """So many of them; the others are counted."""
        rest = iter(of)
        return cls(items=tuple(islice(rest, most)), left_out=sum(1 for _ in rest))

    def shorter(self, most: int) -> Listed[T]:
        """The same with fewer items, none lost from the count."""
        kept: Sequence[T] = self.items[:most]
        return self.model_copy(update={"items": kept, "left_out": self.total - len(kept)})
