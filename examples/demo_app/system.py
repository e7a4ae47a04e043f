"""Everything at once: the service, the crew, the customers, and whoever checks the promises."""

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
from .asked import Asked
from .checking import Checker
from .crew import Crew
from .killing import Killer
from .load import Load
from .moods import receiving
from .outside import Outside
from .panel import extras
from .people import Keys, settle_in

WORKERS = 3
HISTORY = 120
"""So many jobs are there to look at from the first moment on."""


@dataclass(frozen=True, slots=True)
class Town:
    """What runs, and how to come in."""

    app: Duly
    url: str
    keys: Keys
    crew: Crew
    load: Load
    checker: Checker
    killer: Killer

    @property
    def console(self) -> str:
        """A link for whoever looks after the installation; browsers send to nobody what is behind the #."""
        return f"{self.url}/login?next=/console#key={self.keys.platform}"

    def customer(self, org_id: UUID) -> str:
        """A link for somebody of an org."""
        return f"{self.url}/login#key={self.keys.of[org_id]}"


@asynccontextmanager
async def living(app: Duly, host: str = "127.0.0.1", port: int = PORT) -> AsyncIterator[Town]:
    """The whole town. Its customers begin when they are told to: `async with town.load.at_work():`."""
    app.migrate()
    with psycopg.connect(app.database_urls.direct_url, autocommit=True) as conn:
        conn.execute(billing.TABLES)
    crew, asked = Crew(WORKERS, _environment(app)), Asked()
    async with app, crew.at_work():
        keys = await settle_in(app)
        killer = Killer(app, crew)
        checker = Checker(app, asked)
        async with receiving(app), listening(app, host, port, extras=extras(killer, checker)) as url:
            checker.outside = outside = Outside(url, keys.of)
            await crew.until_ready()
            async with outside.at_work(), checker.at_work():
                load = Load(url, keys.of, asked)
                try:
                    yield Town(app, url, keys, crew, load, checker, killer)
                finally:
                    await load.close()
                    await killer.close()


def _environment(app: Duly) -> Mapping[str, str]:
    """Where workers find the same database and files."""
    settings = app.settings
    told: dict[str, str | Path | None] = {
        "DULY_DATABASE_URL": app.database_urls.url,
        "DULY_DATABASE_DIRECT_URL": settings.database_direct_url,
        "DULY_BLOBS_URL": settings.blobs_url,
        "DULY_HOME": settings.home,
    }
    return {name: str(value) for name, value in told.items() if value is not None}
