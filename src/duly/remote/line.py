"""Doing the steps of flows over httpx: one way that waits, and one that awaits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, TypeVar

import httpx

from duly.remote.steps import Course, Next, Open, Pause, Send, Step, Tell, Work, build

T = TypeVar("T")


def told(http: httpx.Client, course: Course[T]) -> Generator[Any]:
    """What the flow tells, until it has its result."""
    with closing(course), closing(_Line(http)) as line:
        step = course.on()
        while step is not None:
            if isinstance(step, Tell):
                yield step.value
                step = course.on()
            else:
                step = course.on(line.do(step))


async def told_async(http: httpx.AsyncClient, course: Course[T]) -> AsyncGenerator[Any]:
    """What the flow tells, until it has its result."""
    with closing(course):
        async with aclosing(_AsyncLine(http)) as line:
            step = course.on()
            while step is not None:
                if isinstance(step, Tell):
                    yield step.value
                    step = course.on()
                else:
                    step = course.on(await line.do(step))


class _Line:
    """Errors of the transport are replies like others."""

    def __init__(self, http: httpx.Client) -> None:
        self._http = http
        self._open: httpx.Response | None = None
        self._pieces: Iterator[bytes] = iter(())

    def do(self, step: Step) -> Any:
        """The reply."""
        try:
            match step:
                case Send():
                    return self._send(step)
                case Open():
                    return self._listen(step)
                case Next():
                    return next(self._pieces, None)
                case Pause():
                    return time.sleep(step.seconds)
                case Work():
                    return step.do()
        except httpx.RequestError as error:
            return error

    def _send(self, step: Send) -> httpx.Response:
        answer = self._listen(step)
        if step.sink is None or not answer.is_success:
            answer.read()
            return answer
        step.sink.seek(0)
        step.sink.truncate()
        for piece in self._pieces:
            step.sink.write(piece)
        return answer

    def _listen(self, step: Send | Open) -> httpx.Response:
        self.close()
        self._open = self._http.send(build(self._http, step), stream=True)
        self._pieces = self._open.iter_bytes()
        return self._open

    def close(self) -> None:
        """Let go of what is open."""
        if self._open is not None:
            self._open.close()
            self._open = None


class _AsyncLine:
    """The same, awaiting."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http
        self._open: httpx.Response | None = None
        self._pieces: AsyncIterator[bytes]

    async def do(self, step: Step) -> Any:
        """The reply."""
        try:
            match step:
                case Send():
                    return await self._send(step)
                case Open():
                    return await self._listen(step)
                case Next():
                    return await anext(self._pieces, None)
                case Pause():
                    return await asyncio.sleep(step.seconds)
                case Work():
                    return await asyncio.to_thread(step.do)
        except httpx.RequestError as error:
            return error

    async def _send(self, step: Send) -> httpx.Response:
        answer = await self._listen(step)
        if step.sink is None or not answer.is_success:
            await answer.aread()
            return answer
        step.sink.seek(0)
        step.sink.truncate()
        async for piece in self._pieces:
            await asyncio.to_thread(step.sink.write, piece)
        return answer

    async def _listen(self, step: Send | Open) -> httpx.Response:
        await self.aclose()
        self._open = await self._http.send(build(self._http, step), stream=True)
        self._pieces = self._open.aiter_bytes()
        return self._open

    async def aclose(self) -> None:
        """Let go of what is open."""
        if self._open is not None:
            await self._open.aclose()
            self._open = None
