"""A server that responds with raw bytes over TCP and then closes the connection."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

JOB = "01890a5d-ac96-774b-bcce-b302099a8057"
RESULT = "7b2f7b5e-6d3c-4a39-9a55-6a3f0e0f4f11"


@dataclass(frozen=True)
class ReceivedRequest:
    """A request as the server received it."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """The address of the server, and the requests it received."""

    address: str = ""
    received: list[ReceivedRequest] = field(default_factory=list)


def response(body: Any, status: int = 200, kind: str = "application/json", **headers: str) -> bytes:
    """Return the bytes of an HTTP response."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    fields = {"content-type": kind, "content-length": str(len(content)), "connection": "close", **headers}
    lines = [
        f"HTTP/1.1 {status} Reason",
        *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + content


def stream_response(*events: bytes) -> bytes:
    """Return the beginning of an event stream without its end."""
    pieces = b"".join(f"{len(event):x}\r\n".encode() + event + b"\r\n" for event in events)
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n" + pieces
    )


def event(seq: int, kind: str = "job.progressed", status: str = "running", **more: Any) -> dict[str, Any]:
    """Return an event as the API returns it."""
    return {"event_seq": seq, "event_type": kind, "status": status, "payload": {"text": "a\u2028b"}, **more}


def sse_event(seq: int, *kind_and_status: str) -> bytes:
    """Return an event as a server-sent event."""
    text = json.dumps(event(seq, *kind_and_status), ensure_ascii=False)
    return f"id: {seq}\nevent: job\ndata: {text}\n\n".encode()


def job(status: str, **more: Any) -> dict[str, Any]:
    """Return a job as the API returns it."""
    return {"job_id": JOB, "status": status, **more}


@asynccontextmanager
async def fake_server(respond: Callable[[ReceivedRequest], bytes]) -> AsyncIterator[Server]:
    """Serve with the responses that `respond` returns."""
    server = Server()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (h.partition(":") for h in head[1:])}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = head[0].split(" ")
            server.received.append(ReceivedRequest(method, path, headers, body))
            writer.write(respond(server.received[-1]))
            await writer.drain()
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    server.address = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    async with listener:
        yield server
