"""A PostgreSQL server for one benchmark, with migrated databases."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from duly.db.migrate import migrate
from duly.embedded import EmbeddedServer, open_server

_TEMPLATE = "migrated"


class BenchServer:
    """A running server whose databases are copies of a migrated one."""

    def __init__(self, server: EmbeddedServer, home: Path) -> None:
        self.home = home
        self._server = server
        self._admin(sql.SQL("create database {}").format(sql.Identifier(_TEMPLATE)))
        migrate(self.url(_TEMPLATE))

    @property
    def version(self) -> str:
        """The version of the server."""
        with psycopg.connect(self._server.dsn()) as conn:
            return f"PostgreSQL {conn.info.server_version // 10000}"

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        return self._server.dsn(name)

    def create(self, name: str) -> str:
        """Create a database; return its URL."""
        names = sql.Identifier(name), sql.Identifier(_TEMPLATE)
        self._admin(sql.SQL("create database {} template {} strategy file_copy").format(*names))
        return self.url(name)

    def drop(self, name: str) -> None:
        """Drop a database."""
        self._admin(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    def _admin(self, command: sql.Composed) -> None:
        with psycopg.connect(self._server.dsn(), autocommit=True) as conn:
            conn.execute(command)


@contextmanager
def open_bench_server(options: Mapping[str, str] | None = None) -> Iterator[BenchServer]:
    """Start a durable server in a temporary folder; stop and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as home:
        server = open_server(Path(home, "pg"), options=options)
        try:
            yield BenchServer(server, Path(home))
        finally:
            server.wait_until_stopped()
