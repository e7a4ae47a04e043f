"""The whole demo system: service, workers, customers and the promise checker."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import psycopg

from duly import Duly
from duly.cli.serve import PORT, listening

from . import billing
from .console_extras import extras
from .customers import Keys, create_customers
from .fault_injection import FaultInjector
from .load import Load
from .probes import HttpProbes
from .promise_checker import Checker
from .submissions import SubmissionLog
from .webhook_endpoint import receiving
from .worker_pool import WorkerPool

WORKERS = 3
INITIAL_JOBS = 120
"""Jobs to see at the start."""


@dataclass(frozen=True, slots=True)
class DemoSystem:
    """The running parts and their links."""

    app: Duly
    url: str
    keys: Keys
    workers: WorkerPool
    load: Load
    checker: Checker
    injector: FaultInjector

    @property
    def console(self) -> str:
        """A sign-in link for the platform operator; browsers do not send the fragment to the server."""
        return f"{self.url}/login?next=/console#key={self.keys.platform}"

    def customer(self, org_id: UUID) -> str:
        """Return a sign-in link for a user of an org."""
        return f"{self.url}/login#key={self.keys.of[org_id]}"


@asynccontextmanager
async def running_system(app: Duly, host: str = "127.0.0.1", port: int = PORT) -> AsyncIterator[DemoSystem]:
    """Run the system. Start the load with `async with system.load.running():`."""
    app.migrate()
    with psycopg.connect(app.database_urls.direct_url, autocommit=True) as conn:
        conn.execute(billing.TABLES)
    workers, submissions = WorkerPool(WORKERS, _environment(app)), SubmissionLog()
    async with app, workers.running():
        keys = await create_customers(app)
        injector = FaultInjector(app, workers)
        checker = Checker(app, submissions)
        async with receiving(app), listening(app, host, port, extras=extras(injector, checker)) as url:
            checker.probes = probes = HttpProbes(url, keys.of)
            await workers.until_ready()
            async with probes.running(), checker.running():
                load = Load(url, keys.of, submissions)
                try:
                    yield DemoSystem(app, url, keys, workers, load, checker, injector)
                finally:
                    await load.close()
                    await injector.close()


def _environment(app: Duly) -> Mapping[str, str]:
    """Return the environment variables for the same database and files."""
    settings = app.settings
    variables: dict[str, str | Path | None] = {
        "DULY_DATABASE_URL": app.database_urls.url,
        "DULY_DATABASE_DIRECT_URL": settings.database_direct_url,
        "DULY_BLOBS_URL": settings.blobs_url,
        "DULY_HOME": settings.home,
    }
    return {name: str(value) for name, value in variables.items() if value is not None}
