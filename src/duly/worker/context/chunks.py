"""Chunks: parts of a job whose results are stored at once, so that a retry skips them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeGuard, TypeVar

from duly.core.errors import ContractError, LeaseLost
from duly.core.outcome import HandlerSignal
from duly.core.redaction import printable

T = TypeVar("T")
_MAX_KEY_LENGTH = 200


class ChunkOwner(Protocol):
    """The context that hands out chunks."""

    def chunk_entered(self) -> AbstractContextManager[object]:
        """Enter a chunk; return its trace span."""

    async def chunk_done(self, chunk: Chunk[Any]) -> None:
        """Store the result of the chunk."""

    def chunk_failed(self, chunk: Chunk[Any], error: Exception) -> bool:
        """Record the failure; return whether the job may go on."""


class Chunk(Generic[T]):
    """Use as `async with chunk: chunk.result = ...`. An error in the block fails the chunk."""

    def __init__(self, owner: ChunkOwner, key: str, item: T, percent: float) -> None:
        self._owner = owner
        self.key = key
        self.item = item
        self.percent = percent
        self.result: Any = None

    async def __aenter__(self) -> Self:
        self._span = self._owner.chunk_entered()
        self._span.__enter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        with leaving(self._span, error):
            if error is None:
                await self._owner.chunk_done(self)
                return False
            return is_chunk_error(error) and self._owner.chunk_failed(self, error)


@contextmanager
def leaving(span: AbstractContextManager[object], error: BaseException | None) -> Iterator[None]:
    """Leave a chunk's block and its span, which records the error of the block or of storing the result."""
    try:
        yield
    except BaseException as late:
        span.__exit__(type(late), late, late.__traceback__)
        raise
    raised = (None, None, None) if error is None else (type(error), error, error.__traceback__)
    span.__exit__(*raised)


def is_chunk_error(error: BaseException | None) -> TypeGuard[Exception]:
    """Whether an error concerns the chunk alone; verdicts and lost leases concern the whole attempt."""
    return isinstance(error, Exception) and not isinstance(error, HandlerSignal | LeaseLost)


def chunk_key(item: T, key: Callable[[T], object] | None) -> str:
    """Return the stable key by which a later attempt recognises the chunk."""
    name = str(key(item) if key is not None else item)
    if not 0 < len(name) <= _MAX_KEY_LENGTH or printable(name) != name:
        raise ContractError(
            f"invalid chunk key {name[:40]!a}",
            field="chunks",
            fix="pass key=... for a short, stable name",
        )
    return name
