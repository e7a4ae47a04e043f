"""Server-sent events (`text/event-stream`)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, TypeVar

from starlette.responses import StreamingResponse

from duly.core.errors import ContractError

T = TypeVar("T")
MEDIA_TYPE = "text/event-stream"
PREAMBLE = "retry: 1000\n\n"
HEARTBEAT = ": still here\n\n"


def stream_documentation(description: str) -> dict[str, Any]:
    """Return a 200 that may also be a stream, for the OpenAPI document."""
    return {"content": {MEDIA_TYPE: {"schema": {"type": "string"}}}, "description": description}


def sse_event(event_id: object, event_type: str, data: str) -> str:
    """Format one event; `event_id` is where a client resumes."""
    return f"id: {event_id}\nevent: {event_type}\ndata: {data}\n\n"


async def stream_response(chunks: AsyncIterator[str]) -> StreamingResponse:
    """Return a stream of events. Its first chunk is read here, so that an error becomes a problem."""
    first = await anext(chunks)
    return StreamingResponse(
        prepend(first, chunks),
        media_type=MEDIA_TYPE,
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


async def prepend(first: T, rest: AsyncIterator[T]) -> AsyncIterator[T]:
    """Yield a chunk that was read already, then the rest."""
    yield first
    async for chunk in rest:
        yield chunk


def resume_after(after: int, last_event_id: str | None) -> int:
    """Return the number of the last event that the client has: from the query, or from a browser."""
    if not last_event_id:
        return after
    if not (last_event_id.isascii() and last_event_id.isdigit()) or len(last_event_id) > 9:
        raise ContractError("not a number", field="Last-Event-ID", fix="send the id of the last event")
    return max(after, int(last_event_id))
