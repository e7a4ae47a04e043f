"""What is looked at: the application, its addresses, and a connection to look through."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self

from duly.core.invariants import RunConditions
from duly.core.policy import JobPolicy
from duly.db.pool import Connection
from duly.features.doctor import store as health
from duly.features.doctor.store import Pooling, Row
from duly.jobs.application import App

_OURS = "duly."
"""Job types of that beginning are the maintenance's."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What the settings say."""

    addresses: Callable[[], tuple[str, str]]
    """The address for work and the direct one; the embedded server is started for it."""
    direct_is_set: bool
    conditions: Callable[[], RunConditions]


class Patient:
    """One examination's view of an installation. The connection is made again when it was cut."""

    def __init__(self, app: App, around: Circumstances) -> None:
        self.app = app
        self.around = around
        self.url = self.direct_url = ""
        self.direct_pooling = Pooling.NONE
        self._open = AsyncExitStack()
        self._conn: Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    async def locate(self) -> None:
        """Find the addresses."""
        self.url, self.direct_url = await asyncio.to_thread(self.around.addresses)

    async def conn(self) -> Connection:
        """The connection to look through, around any pooler."""
        if self._conn is None or self._conn.closed:
            self._conn = await self._open.enter_async_context(health.connected(self.direct_url))
        return self._conn

    async def read(self, name: str, **values: Any) -> list[Row]:
        """Rows as the login sees them."""
        return await health.read(await self.conn(), name, values)

    async def read_as_engine(self, name: str, **values: Any) -> list[Row]:
        """Rows as the engine sees them."""
        return await health.read_as_engine(await self.conn(), name, values)

    @property
    def declared(self) -> Mapping[str, JobPolicy]:
        """The policies of the job types of the code, if there is any."""
        found = {job.name: job.policy for job in self.app.registry}
        return found if any(not name.startswith(_OURS) for name in found) else {}
