"""A chunk: one part of a job's work, kept as soon as it is done and never done twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeGuard, TypeVar

from duly.model.errors import ContractError, LeaseLost
from duly.model.redact import printable
from duly.model.verdict import Verdict

T = TypeVar("T")
_LONGEST = 200


class Owner(Protocol):
    """The context that hands out chunks."""

    def chunk_entered(self) -> AbstractContextManager[object]:
        """A chunk is being worked on; what is around that work."""

    async def chunk_done(self, chunk: Chunk[Any]) -> None:
        """Keep it."""

    def chunk_failed(self, chunk: Chunk[Any], error: Exception) -> bool:
        """Note the failure; whether the job may go on."""


class Chunk(Generic[T]):
    """Use as `async with chunk: chunk.result = ...`. What its block raises is the chunk's failure."""

    def __init__(self, owner: Owner, key: str, item: T, percent: float) -> None:
        self._owner = owner
        self.key = key
        self.item = item
        self.percent = percent
        self.result: Any = None

    async def __aenter__(self) -> Self:
        self._around = self._owner.chunk_entered()
        self._around.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        with leaving(self._around, error):
            if error is None:
                await self._owner.chunk_done(self)
                return False
            return is_chunks_own(error) and self._owner.chunk_failed(self, error)


@contextmanager
def leaving(around: AbstractContextManager[object], error: BaseException | None) -> Iterator[None]:
    """The end of a chunk's block. What is around it hears of its error, or of one that came in keeping it."""
    try:
        yield
    except BaseException as late:
        around.__exit__(type(late), late, late.__traceback__)
        raise
    how = (None, None, None) if error is None else (type(error), error, error.__traceback__)
    around.__exit__(*how)


def is_chunks_own(error: BaseException | None) -> TypeGuard[Exception]:
    """Whether an error is the chunk's alone: a verdict and a lost lease concern the whole attempt."""
    return isinstance(error, Exception) and not isinstance(error, Verdict | LeaseLost)


def chunk_key(item: T, key: Callable[[T], object] | None) -> str:
    """The stable name of a chunk: a later attempt knows it by this."""
    name = str(key(item) if key is not None else item)
    if not 0 < len(name) <= _LONGEST or printable(name) != name:
        raise ContractError(
            f"{name[:40]!a} is no key for a chunk",
            field="chunks",
            fix="pass key=... for a short, stable name",
        )
    return name
