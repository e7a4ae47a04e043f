"""A PostgreSQL server for a test run, with fresh databases in milliseconds."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlencode

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from duly.core.schema import Schema
from duly.db.migrate import ENGINE, migrate, migrations
from duly.embedded import EmbeddedServer, open_server
from duly.testing.pooler import Pooler

# No data of a test has to survive a crash of the machine; everything else is as in production.
_FAST_OPTIONS = {"fsync": "off", "full_page_writes": "off", "max_connections": "300"}
_TEMPLATE_LOCK = 7_204_191_385
_DISCONNECT_TIMEOUT = 1.0


@dataclass(frozen=True, slots=True)
class FreshDatabase:
    """The database of one test. `direct_url` bypasses the pooler, if there is one."""

    url: str
    direct_url: str


class DatabaseCluster:
    """One PostgreSQL server with a migrated template database."""

    def __init__(self, home: Path) -> None:
        url = os.environ.get("DULY_TEST_DATABASE_URL")
        self._server: EmbeddedServer | None = None if url else open_server(home, options=_FAST_OPTIONS)
        self._admin = url or self._require().dsn()
        self._pooler = Pooler(self._admin) if os.environ.get("DULY_TEST_POOLER") else None
        self._templates: dict[tuple[Schema, ...], str] = {}

    def close(self, *, wait: bool = False) -> None:
        """Release the server; the embedded one stops with its last user, which `wait` waits for."""
        if self._pooler is not None:
            self._pooler.close()
        if self._server is not None:
            release = self._server.wait_until_stopped if wait else self._server.close
            release()

    def url(self, name: str) -> str:
        """Return the URL of one database of this server."""
        return _with_name(self._admin, name)

    @contextmanager
    def fresh(self, *, migrated: bool = True, schemas: Sequence[Schema] = ()) -> Iterator[FreshDatabase]:
        """Create a fresh database, optionally with the schemas of applications; drop it at the end."""
        name = f"duly_{uuid.uuid4().hex[:16]}"
        template = self._template((ENGINE, *schemas)) if migrated else "template0"
        with psycopg.connect(self._admin, autocommit=True) as conn:
            conn.execute(_SQL_CREATE.format(sql.Identifier(name), sql.Identifier(template)))
            try:
                direct = self.url(name)
                yield FreshDatabase(_with_name(self._pooler.url, name) if self._pooler else direct, direct)
            finally:
                _disconnect_all(conn, name)
                conn.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def _template(self, schemas: tuple[Schema, ...]) -> str:
        """Return the migrated template; the first process creates it, the others wait for it."""
        if schemas not in self._templates:
            self._templates[schemas] = self._create_template(schemas)
        return self._templates[schemas]

    def _create_template(self, schemas: tuple[Schema, ...]) -> str:
        name = f"duly_template_{_fingerprint(schemas)}"
        with psycopg.connect(self._admin, autocommit=True) as conn:
            conn.execute("select pg_advisory_lock(%s)", [_TEMPLATE_LOCK])
            if conn.execute(
                "select 1 from pg_database where datname = %s and datistemplate", [name]
            ).fetchone():
                return name
            conn.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
            conn.execute(_SQL_CREATE.format(sql.Identifier(name), sql.Identifier("template0")))
            for schema in schemas:
                migrate(self.url(name), schema)
            # Only a finished template is marked as one, so that a killed run leaves none behind.
            conn.execute(sql.SQL("alter database {} is_template true").format(sql.Identifier(name)))
        return name

    def _require(self) -> EmbeddedServer:
        assert self._server is not None
        return self._server


_SQL_DISCONNECT = "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s"
_SQL_CREATE = sql.SQL("create database {} template {} strategy file_copy")


def _disconnect_all(conn: psycopg.Connection, name: str) -> None:
    """End all sessions of a database: dropping it while one is ending sleeps for 100 ms."""
    deadline = time.monotonic() + _DISCONNECT_TIMEOUT
    while conn.execute(_SQL_DISCONNECT, [name]).fetchone() and time.monotonic() < deadline:
        time.sleep(0.002)


def _fingerprint(schemas: tuple[Schema, ...]) -> str:
    digest = hashlib.sha256()
    for schema in schemas:
        for migration in migrations(schema):
            digest.update(migration.checksum.encode())
    return digest.hexdigest()[:16]


def _with_name(url: str, name: str) -> str:
    """Return the URL of another database of the same server; as a URI, which every driver accepts."""
    parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    user = quote(parts.pop("user", ""), safe="")
    password = quote(parts.pop("password", ""), safe="")
    login = f"{user}{':' if password else ''}{password}@" if user else ""
    parts.pop("dbname", None)
    return f"postgresql://{login}/{name}?{urlencode(parts, quote_via=quote, safe='')}"
