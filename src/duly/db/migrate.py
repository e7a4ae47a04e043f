"""Forward-only migrations: numbered files, applied once, in order, one transaction each.

The first file of a schema is its baseline. A baseline that replaces migrations has the number of the last of
them, and `<release>.sha256` beside it lists them (what `sha256sum *.sql` printed in that release). A database
that has applied the last of them counts as made by the baseline; an older one has to upgrade to that release
first. The list also has earlier texts of unreleased migrations whose result is the same.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import psycopg
from psycopg import sql

from duly.core.errors import SchemaMismatch, StoreUnavailable
from duly.core.schema import Schema

# Every version of the package must use the same number.
_LOCK = 4_846_231_970
_LOCK_TIMEOUT = "500ms"
"""Shorter than `deadlock_timeout`: if it and a client wait for each other, the migration gives up."""
_MAX_LOCK_ATTEMPTS = 60
_LOCK_RETRY_DELAY = 0.5

ENGINE = Schema("duly", "duly.db")
"""The schema of the engine. The schemas of applications build on it."""

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The hash of the file, which reveals later edits."""
        return hashlib.sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Squashed:
    """The migrations of a release that the baseline replaced."""

    release: str
    checksums: frozenset[tuple[int, str]]
    """The version and the checksum of each migration."""


def migrations(schema: Schema = ENGINE) -> list[Migration]:
    """Return the migrations of a schema, the baseline first."""
    return sorted(_read(schema), key=lambda m: m.version)


def squashed(schema: Schema = ENGINE) -> Squashed | None:
    """Return the migrations that the baseline of a schema replaced, if any."""
    for entry in _folder(schema).iterdir():
        if entry.name.endswith(".sha256"):
            rows = (line.split() for line in entry.read_text(encoding="utf-8").splitlines())
            checksums = frozenset((int(name.partition("_")[0]), checksum) for checksum, name in rows)
            return Squashed(entry.name.removesuffix(".sha256"), checksums)
    return None


def _folder(schema: Schema) -> Traversable:
    return resources.files(schema.package).joinpath("migrations")


def _read(schema: Schema) -> Iterator[Migration]:
    for entry in _folder(schema).iterdir():
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
    """Raise unless the database has all migrations of the engine and of these schemas."""
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
    files, before = migrations(schema), squashed(schema)
    known = {(m.version, m.checksum) for m in files} | (before.checksums if before else frozenset())
    applied = _applied(conn, schema, role)
    for version, checksum in applied:
        if version > files[-1].version:
            raise SchemaMismatch(
                f"the database is at version {version} of {schema.name}, newer than this package",
                fix="update duly",
            )
        if (version, checksum) not in known:
            raise SchemaMismatch(
                f"migration {version} of {schema.name} was edited after it was applied (checksum mismatch)",
                fix="restore its file: migrations never change",
            )
    versions = [version for version, _ in applied]
    if before and versions and files[0].version not in versions:
        raise SchemaMismatch(
            f"the database is at version {versions[-1]} of {schema.name}, older than {before.release}",
            fix=f"upgrade to {before.release} and run `duly migrate` there first",
        )
    return [m for m in files if m.version not in versions]


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
    # A waiting lock request blocks all later ones: give it up after a short time, and try again.
    for _ in range(_MAX_LOCK_ATTEMPTS):
        with suppress(psycopg.errors.LockNotAvailable):
            return _apply_once(conn, schema, migration)
        time.sleep(_LOCK_RETRY_DELAY)
    return _apply_once(conn, schema, migration)


def _apply_once(conn: Connection, schema: Schema, migration: Migration) -> None:
    with conn.transaction():
        conn.execute(f"set local lock_timeout = '{_LOCK_TIMEOUT}'")
        if migration != migrations(schema)[0]:  # the baseline creates the schema and its owner
            conn.execute("set local role duly_owner")
        conn.execute(sql.SQL(migration.text))
        conn.execute(
            sql.SQL("insert into {} (version, name, checksum) values (%s, %s, %s)").format(_versions(schema)),
            [migration.version, migration.name, migration.checksum],
        )


def _versions(schema: Schema) -> sql.Identifier:
    return sql.Identifier(schema.name, "schema_versions")
