"""Fixtures: the service in this process, its job types, and a client that calls it without a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import httpx
import pytest
from fastapi import FastAPI

from duly import AsyncClient, Context, Duly, Fail
from tests.http.conftest import api, key, options

__all__ = ["api", "key", "options"]


class Gate:
    """Holds `report.build` after its first region until the test sets `opened`."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()


@pytest.fixture
def gate(app: Duly) -> Gate:
    """Declare the job types; return the gate of `report.build`."""
    gate = Gate()

    @app.job("report.build")
    async def build(ctx: Context, regions: list[str]) -> dict[str, int]:
        async for chunk in ctx.chunks(regions):
            async with chunk:
                if chunk.item != regions[0]:
                    await gate.opened.wait()
                chunk.result = len(chunk.item)
        await ctx.artifact("reports/../größe 1.txt", b"x" * 100_000, content_type="text/plain")
        return await ctx.results()

    @app.job("report.refuse")
    async def refuse(message: str = "page 3 is missing") -> None:
        raise Fail(message, code="report.incomplete")

    return gate


@pytest.fixture
async def client(gate: Gate, api: FastAPI, key: str) -> AsyncIterator[AsyncClient]:
    transport = httpx.ASGITransport(api, raise_app_exceptions=False)
    async with AsyncClient("http://duly.test", key, transport=transport) as client:
        yield client
