"""The target of the checks: an application, its database URLs, and a connection around any pooler."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self

from duly.core.invariants import RunConditions
from duly.core.policy import JobPolicy
from duly.db.pool import Connection
from duly.db.rows import rows
from duly.features.doctor import store
from duly.features.doctor.store import Row
from duly.features.system_jobs import is_system_job
from duly.jobs.application import App


@dataclass(frozen=True, slots=True)
class DoctorSettings:
    """The settings of the application that checks need."""

    database_urls: Callable[[], tuple[str, str]]
    """Return the URL for work and the direct one; starts the embedded server if there is one."""
    direct_is_set: bool
    conditions: Callable[[], RunConditions]


class Target:
    """An application and its database, for the checks of one report. Reconnects after a lost connection."""

    def __init__(self, app: App, settings: DoctorSettings) -> None:
        self.app = app
        self.settings = settings
        self.url = self.direct_url = ""
        self._connections = AsyncExitStack()
        self._conn: Connection | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._connections.aclose()

    async def locate(self) -> None:
        """Read the database URLs."""
        self.url, self.direct_url = await asyncio.to_thread(self.settings.database_urls)

    async def conn(self) -> Connection:
        """Return the direct connection."""
        if self._conn is None or self._conn.closed:
            self._conn = await self._connections.enter_async_context(store.connect(self.direct_url))
        return self._conn

    async def read(self, name: str, **values: Any) -> list[Row]:
        """Return the rows of a statement of the doctor, with the rights of the login."""
        async with store.read_only(await self.conn(), as_engine=False) as conn:
            return await rows(conn, f"doctor/{name}", values)

    async def read_as_engine(self, name: str, **values: Any) -> list[Row]:
        """Return the rows of a statement of the doctor, with the rights of the engine."""
        async with store.read_only(await self.conn(), as_engine=True) as conn:
            return await rows(conn, f"doctor/{name}", values)

    @property
    def declared_policies(self) -> Mapping[str, JobPolicy]:
        """The policies of the declared job types; none if only system jobs are declared."""
        policies = {job.name: job.policy for job in self.app.registry}
        return policies if not all(map(is_system_job, policies)) else {}
