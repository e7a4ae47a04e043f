"""Open the resources that the settings name: database, blobs, tracing, and the embedded server."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import psycopg

from duly.blobs import BlobStore
from duly.core.errors import ConfigurationError, StoreUnavailable
from duly.core.schema import Schema
from duly.db import migrate
from duly.db.database import Database
from duly.db.pool import PoolSize
from duly.embedded import EmbeddedDatabaseError, EmbeddedServer, open_server, prepare_home
from duly.jobs.enqueue_batcher import EnqueueBatcher, Waker
from duly.jobs.resources import Resources
from duly.settings import Settings

if TYPE_CHECKING:
    from duly.observability.traces import Traces

_EMBEDDED_DATABASE = "duly"


class DatabaseUrls(NamedTuple):
    """The URLs of the database: for work, and without a pooler."""

    url: str
    direct_url: str
    server: EmbeddedServer | None = None
    """The lease on the embedded server, if it is used."""


async def open_resources(
    settings: Settings, url: str, *, engine_only: bool = False, max_connections: int | None = None
) -> Resources:
    """Open the database and the blobs for the running event loop."""
    blobs = _open_blobs(settings)
    max_size = min(settings.pool_max, max_connections or settings.pool_max)
    # A worker claims and settles at once: the second connection is there when the first jobs end.
    min_size = max(settings.pool_min, 2) if engine_only else settings.pool_min
    size = PoolSize(min(min_size, max_size), max_size, settings.pool_timeout)
    pooled = settings.database_direct_url is not None
    traces = traces_of(settings)
    tracer = None if traces is None else traces.statement
    database = Database(url, pooled=pooled, size=size, engine_only=engine_only, tracer=tracer)
    await database.open()
    waker = Waker(database)
    batcher = EnqueueBatcher(database, waker, traces)
    return Resources(database, blobs, settings.payload_inline_max, waker, batcher, traces)


def traces_of(settings: Settings) -> Traces | None:
    """Return the tracing that the settings name, if any."""
    if settings.traces is None:
        return None
    try:
        from duly.observability.traces import traces_to
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{error.name} is not installed", field="traces", fix="install duly[traces]"
        ) from None
    return traces_to(settings.traces)


def _open_blobs(settings: Settings) -> BlobStore:
    url = settings.blobs_url or prepare_home(settings.home) / "blobs"
    try:
        return BlobStore(url)
    except Exception as error:
        raise ConfigurationError(
            str(error), field="blobs_url", fix="name a folder, s3://, gs:// or az://"
        ) from error


def start_embedded(home: Path | None, schemas: Sequence[Schema] = ()) -> DatabaseUrls:
    """Start the embedded server if needed, and migrate its database."""
    try:
        server = open_server(home)
    except EmbeddedDatabaseError as error:
        raise StoreUnavailable(
            str(error), fix="or set DULY_DATABASE_URL to a PostgreSQL that already runs"
        ) from error
    with psycopg.connect(server.dsn(), autocommit=True) as conn, suppress(psycopg.errors.DuplicateDatabase):
        conn.execute(f"create database {_EMBEDDED_DATABASE}")
    url = server.dsn(_EMBEDDED_DATABASE)
    for schema in (migrate.ENGINE, *schemas):
        migrate.migrate(url, schema)
    return DatabaseUrls(url, url, server)
