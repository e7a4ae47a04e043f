"""Where the objects meet: settings become a database, a blob store and an application."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from duly.blobs import BlobStore
from duly.client.app import App
from duly.client.ground import Ground
from duly.devdb import Server, open_server
from duly.devdb.places import prepare_home
from duly.model.errors import ConfigurationError
from duly.settings import Settings
from duly.store import migrate
from duly.store.pool import PoolSize
from duly.store.session import Database

_EMBEDDED_NAME = "duly"


class Place(NamedTuple):
    """Where the database is."""

    url: str
    direct_url: str
    server: Server | None = None
    """The lease on the embedded server, if that is what we use."""


class Duly(App):
    """An application, wired by its settings: arguments win over the environment, that over the file."""

    def __init__(self, settings: Settings | None = None, **overrides: Any) -> None:
        self.settings = settings or Settings.load(**overrides)
        super().__init__(self._open)

    @cached_property
    def place(self) -> Place:
        """The database that the settings name, or the embedded one, started and migrated."""
        url = self.settings.database_url
        return Place(url, self.settings.database_direct_url or url) if url else _embedded(self.settings.home)

    def migrate(self) -> list[str]:
        """Bring the database to this package's version; the names of what was applied."""
        return [m.name for m in migrate.migrate(self.place.direct_url)]

    async def _open(self) -> Ground:
        settings = self.settings
        place = await asyncio.to_thread(lambda: self.place)
        await asyncio.to_thread(migrate.check, place.direct_url)
        blobs = _blobs(settings)
        size = PoolSize(settings.pool_min, settings.pool_max, settings.pool_patience)
        database = Database(place.url, pooled=settings.database_direct_url is not None, size=size)
        await database.open()
        return Ground(database, blobs, settings.payload_inline_max)


def _blobs(settings: Settings) -> BlobStore:
    place = settings.blobs_url or prepare_home(settings.home) / "blobs"
    try:
        return BlobStore(place)
    except Exception as error:
        raise ConfigurationError(
            str(error), field="blobs_url", fix="name a folder, s3://, gs:// or az://"
        ) from error


def _embedded(home: Path | None) -> Place:
    server = open_server(home)
    with psycopg.connect(server.dsn(), autocommit=True) as conn, suppress(psycopg.errors.DuplicateDatabase):
        conn.execute(f"create database {_EMBEDDED_NAME}")
    url = server.dsn(_EMBEDDED_NAME)
    migrate.migrate(url)
    return Place(url, url, server)
