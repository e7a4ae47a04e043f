"""The ground to stand on: the database that the settings name, blobs, and where spans go."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from duly.blobs import BlobStore
from duly.client.ground import Ground
from duly.client.outbox import Outbox
from duly.client.wake import Waker
from duly.devdb import Server, open_server
from duly.devdb.errors import DevdbError
from duly.devdb.places import prepare_home
from duly.model.errors import ConfigurationError, StoreUnavailable
from duly.model.schema import Schema
from duly.settings import Settings
from duly.store import migrate
from duly.store.pool import PoolSize
from duly.store.session import Database

if TYPE_CHECKING:
    from duly.observe.traces import Traces

_EMBEDDED_NAME = "duly"


class Place(NamedTuple):
    """Where the database is."""

    url: str
    direct_url: str
    server: Server | None = None
    """The lease on the embedded server, if that is what we use."""


async def open_ground(
    settings: Settings, url: str, *, engine: bool = False, most: int | None = None
) -> Ground:
    """The database and the blobs that the settings name, opened for the running loop."""
    blobs = _blobs(settings)
    largest = min(settings.pool_max, most or settings.pool_max)
    size = PoolSize(min(settings.pool_min, largest), largest, settings.pool_patience)
    pooled = settings.database_direct_url is not None
    traces = traces_of(settings)
    watch = None if traces is None else traces.statement
    database = Database(url, pooled=pooled, size=size, engine=engine, watch=watch)
    await database.open()
    waker = Waker(database)
    outbox = Outbox(database, waker, traces)
    return Ground(database, blobs, settings.payload_inline_max, waker, outbox, traces)


def traces_of(settings: Settings) -> Traces | None:
    """Where spans go; nowhere unless somebody asked for them."""
    if settings.traces is None:
        return None
    try:
        from duly.observe.traces import traces_to
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{error.name} is not installed", field="traces", fix="install duly[traces]"
        ) from None
    return traces_to(settings.traces)


def _blobs(settings: Settings) -> BlobStore:
    place = settings.blobs_url or prepare_home(settings.home) / "blobs"
    try:
        return BlobStore(place)
    except Exception as error:
        raise ConfigurationError(
            str(error), field="blobs_url", fix="name a folder, s3://, gs:// or az://"
        ) from error


def embedded(home: Path | None, schemas: Sequence[Schema] = ()) -> Place:
    """The embedded server, started, with the schemas of this version."""
    try:
        server = open_server(home)
    except DevdbError as error:
        raise StoreUnavailable(str(error), fix="or name a PostgreSQL by DULY_DATABASE_URL") from error
    with psycopg.connect(server.dsn(), autocommit=True) as conn, suppress(psycopg.errors.DuplicateDatabase):
        conn.execute(f"create database {_EMBEDDED_NAME}")
    url = server.dsn(_EMBEDDED_NAME)
    for schema in (migrate.ENGINE, *schemas):
        migrate.migrate(url, schema)
    return Place(url, url, server)
