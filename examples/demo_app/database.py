"""The demo's own database on the embedded server, new at every start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from duly.embedded import open_server

MAX_DEMOS = 20


@contextmanager
def fresh_database(home: Path | None) -> Iterator[str]:
    """Create a new database on a running server; the one of an earlier demo is dropped."""
    with open_server(home) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            name = _create_database(conn)
        yield server.dsn(name)


def _create_database(conn: psycopg.Connection) -> str:
    """Create the first database that no other demo uses."""
    for number in range(1, MAX_DEMOS):
        name = f"duly_demo_{number}"
        try:
            conn.execute(f"drop database if exists {name}")
        except psycopg.errors.ObjectInUse:
            continue
        conn.execute(f"create database {name}")
        return name
    raise RuntimeError(f"{MAX_DEMOS} demos are running already")
