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
from duly.model.schema import Schema

# Any fixed number will do, as long as every version of the package uses the same one.
_LOCK = 4_846_231_970
_TRIES, _AGAIN = 30, 1.0

ENGINE = Schema("duly", "duly.store")
"""Duly's own. Applications bring theirs, which stand on it."""

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


def migrations(schema: Schema = ENGINE) -> list[Migration]:
    """Every migration of a schema, oldest first."""
    return sorted(_read(schema), key=lambda m: m.version)


def _read(schema: Schema) -> Iterator[Migration]:
    for entry in resources.files(schema.package).joinpath("migrations").iterdir():
        number, _, name = entry.name.removesuffix(".sql").partition("_")
        if entry.name.endswith(".sql"):
            yield Migration(int(number), name, entry.read_text(encoding="utf-8"))


def migrate(dsn: str, schema: Schema = ENGINE, *, upto: int | None = None) -> list[Migration]:
    """Bring a schema to this package's version; safe to call from many processes at once."""
    with _connected(dsn) as conn:
        conn.execute("select pg_advisory_lock(%s)", [_LOCK])
        pending = [m for m in _pending(conn, schema, "duly_owner") if upto is None or m.version <= upto]
        for migration in pending:
            _apply(conn, schema, migration)
        return pending


def check(dsn: str, *schemas: Schema) -> None:
    """Refuse a database whose schema is not this package's, or not one of these."""
    with _connected(dsn) as conn:
        missing = sum(len(_pending(conn, schema, "duly_engine")) for schema in (ENGINE, *schemas))
    if missing:
        raise SchemaMismatch(f"{missing} migrations are missing", fix="run `duly migrate`, or app.migrate()")


def _connected(dsn: str) -> Connection:
    try:
        return psycopg.connect(dsn, autocommit=True)
    except psycopg.OperationalError as error:
        raise StoreUnavailable(str(error).strip(), fix="check DULY_DATABASE_URL and the server") from error


def _pending(conn: Connection, schema: Schema, role: str) -> list[Migration]:
    known = {m.version: m for m in migrations(schema)}
    for version, checksum in _applied(conn, schema, role):
        if version not in known:
            raise SchemaMismatch(
                f"the database is at version {version} of {schema.name}, newer than this package",
                fix="update duly",
            )
        if known.pop(version).checksum != checksum:
            raise SchemaMismatch(
                f"migration {version} of {schema.name} was applied in another form",
                fix="restore its file: migrations never change",
            )
    return list(known.values())


def _applied(conn: Connection, schema: Schema, role: str) -> list[tuple[Any, ...]]:
    if not conn.execute("select 1 from pg_namespace where nspname = %s", [schema.name]).fetchone():
        return []
    with conn.transaction():
        # The login role need not inherit any rights.
        conn.execute(sql.SQL("set local role {}").format(sql.Identifier(role)))
        return conn.execute(
            sql.SQL("select version, checksum from {} order by version").format(_versions(schema))
        ).fetchall()


def _apply(conn: Connection, schema: Schema, migration: Migration) -> None:
    """Whoever waits for a lock keeps others waiting behind it: better let go, and try again."""
    for _ in range(_TRIES):
        with suppress(psycopg.errors.LockNotAvailable):
            return _apply_once(conn, schema, migration)
        time.sleep(_AGAIN)
    return _apply_once(conn, schema, migration)


def _apply_once(conn: Connection, schema: Schema, migration: Migration) -> None:
    with conn.transaction():
        conn.execute("set local lock_timeout = '2s'")
        if migration.version > 1:  # the first one makes the schema, and the first of all its owner
            conn.execute("set local role duly_owner")
        conn.execute(sql.SQL(migration.text))
        conn.execute(
            sql.SQL("insert into {} (version, name, checksum) values (%s, %s, %s)").format(_versions(schema)),
            [migration.version, migration.name, migration.checksum],
        )


def _versions(schema: Schema) -> sql.Identifier:
    return sql.Identifier(schema.name, "schema_versions")
