"""Where the demo lives: a database of its own on the embedded server, new at every start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from duly.embedded import open_server

_MOST = 20


@contextmanager
def fresh_database(home: Path | None) -> Iterator[str]:
    """A new database, and the server for as long as the block lasts. That of an earlier demo goes."""
    with open_server(home) as server:
        with psycopg.connect(server.dsn(), autocommit=True) as conn:
            name = _made(conn)
        yield server.dsn(name)


def _made(conn: psycopg.Connection) -> str:
    """The first that no other demo is using."""
    for number in range(1, _MOST):
        name = f"duly_demo_{number}"
        try:
            conn.execute(f"drop database if exists {name}")
        except psycopg.errors.ObjectInUse:
            continue
        conn.execute(f"create database {name}")
        return name
    raise RuntimeError(f"{_MOST} demos are running already")
