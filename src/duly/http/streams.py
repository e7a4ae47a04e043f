"""Server-sent events: what every stream has in common."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from starlette.responses import StreamingResponse

T = TypeVar("T")
MEDIA_TYPE = "text/event-stream"
OPENING = "retry: 1000\n\n"
SIGN_OF_LIFE = ": still here\n\n"


def documented_as(description: str) -> dict[str, Any]:
    """A 200 that may also be a stream, for the OpenAPI document."""
    return {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": description}


def line(number: object, kind: str, data: str) -> str:
    """One event, and where to go on after it."""
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n"


async def streaming(told: AsyncIterator[str]) -> StreamingResponse:
    """What is told, piece by piece. Its first piece is taken here, so that what is wrong raises now."""
    first = await anext(told)
    return StreamingResponse(
        whole(first, told),
        media_type=MEDIA_TYPE,
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def whole(first: T, rest: AsyncIterator[T]) -> AsyncIterator[T]:
    """All of it, of which the first piece was taken already."""
    yield first
    async for piece in rest:
        yield piece
