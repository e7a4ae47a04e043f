"""Clients that repeat a request as soon as it is answered, over persistent connections."""

from __future__ import annotations

import asyncio
import time


async def rate(port: int, requests: list[bytes], callers: int, seconds: float) -> float:
    """Return the answers per second; each client has its own request, if there are enough."""
    until = time.perf_counter() + seconds
    assigned = [requests[number % len(requests)] for number in range(callers)]
    counts = await asyncio.gather(*(_ask(port, request, until) for request in assigned))
    return sum(counts) / seconds


async def _ask(port: int, request: bytes, until: float) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    count = 0
    try:
        while time.perf_counter() < until:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            if not head.startswith(b"HTTP/1.1 200"):
                raise RuntimeError(head.decode())
            length = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
            await reader.readexactly(int(length.partition(b":")[2]))
            count += 1
    finally:
        writer.close()
    return count
