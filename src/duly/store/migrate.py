"""Forward-only migrations: numbered files, applied once, in order, one transaction each."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql

from duly.model.errors import SchemaMismatch, StoreUnavailable

# Any fixed number will do, as long as every version of the package uses the same one.
_LOCK = 4_846_231_970
_TRIES, _AGAIN = 30, 1.0

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Migration:
    """One file of the schema's history."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The hash by which a changed file is noticed."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Every migration of this package, oldest first."""
    return sorted(_read(), key=lambda m: m.version)


def _read() -> Iterator[Migration]:
    for entry in resources.files("duly.store").joinpath("migrations").iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        if entry.name.endswith(".sql"):
            yield Migration(int(number), name, entry.read_text(encoding="utf-8"))


def migrate(dsn: str, *, upto: int | None = None) -> list[Migration]:
    """Bring the database to this package's version; safe to call from many processes at once."""
    with _connected(dsn) as conn:
        conn.execute("select pg_advisory_lock(%s)", [_LOCK])
        pending = [m for m in _pending(conn, "duly_owner") if upto is None or m.version <= upto]
        for migration in pending:
            _apply(conn, migration)
        return pending


def check(dsn: str) -> None:
    """Refuse a database whose schema is not this package's."""
    with _connected(dsn) as conn:
        missing = _pending(conn, "duly_engine")
    if missing:
        raise SchemaMismatch(
            f"{len(missing)} migrations are missing", fix="run `duly migrate`, or app.migrate()"
        )


def _connected(dsn: str) -> Connection:
    try:
        return psycopg.connect(dsn, autocommit=True)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(str(error).strip(), fix="check DULY_DATABASE_URL and the server") from error


def _pending(conn: Connection, role: str) -> list[Migration]:
    known = {m.version: m for m in migrations()}
    for version, checksum in _applied(conn, role):
        if version not in known:
            raise SchemaMismatch(
                f"the database is at version {version}, newer than this package", fix="update duly"
            )
        if known.pop(version).checksum != checksum:
            raise SchemaMismatch(
                f"migration {version} was applied in another form",
                fix="restore its file: migrations never change",
            )
    return list(known.values())


def _applied(conn: Connection, role: str) -> list[tuple[Any, ...]]:
    if not conn.execute("select 1 from pg_namespace where nspname = 'duly'").fetchone():
        return []
    with conn.transaction():
        # The login role need not inherit any rights.
        conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        return conn.execute("select version, checksum from duly.schema_versions order by version").fetchall()


def _apply(conn: Connection, migration: Migration) -> None:
    """Whoever waits for a lock keeps others waiting behind it: better let go, and try again."""
    for _ in range(_TRIES):
        with suppress(psycopg.errors.LockNotAvailable):
            return _apply_once(conn, migration)
        time.sleep(_AGAIN)
    return _apply_once(conn, migration)


def _apply_once(conn: Connection, migration: Migration) -> None:
    with conn.transaction():
        conn.execute("set local lock_timeout = '2s'")
        if migration.version > 1:  # the first one makes the owner
            conn.execute("set local role duly_owner")
        conn.execute(sql.SQL(migration.text))
        conn.execute(
            "insert into duly.schema_versions (version, name, checksum) values (%s, %s, %s)",
            [migration.version, migration.name, migration.checksum],
        )
