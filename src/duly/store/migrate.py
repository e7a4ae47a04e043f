"""Forward-only migrations: numbered files, applied once, in order, one transaction each."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

import psycopg
from psycopg import sql

from duly.model.errors import SchemaMismatch

# Any fixed number will do, as long as every version of the package uses the same one.
_LOCK = 4_846_231_970

_GROUND = """
    create schema if not exists duly;
    create table if not exists duly.schema_versions (
        version integer primary key,
        name text not null,
        checksum text not null,
        applied_at timestamptz not null default now()
    );
"""


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
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select pg_advisory_lock(%s)", [_LOCK])
        conn.execute(_GROUND)
        pending = [m for m in _pending(conn) if upto is None or m.version <= upto]
        for migration in pending:
            _apply(conn, migration)
        return pending


def check(dsn: str) -> None:
    """Refuse a database whose schema is not this package's."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        exists = conn.execute("select to_regclass('duly.schema_versions') is not null").fetchone()
        missing = _pending(conn) if exists and exists[0] else migrations()
    if missing:
        raise SchemaMismatch(
            f"{len(missing)} migrations are missing", fix="run the migrations: duly.migrate(url)"
        )


def _pending(conn: psycopg.Connection[tuple[object, ...]]) -> list[Migration]:
    known = {m.version: m for m in migrations()}
    applied = {
        int(str(version)): str(checksum)
        for version, checksum in conn.execute("select version, checksum from duly.schema_versions")
    }
    for version, checksum in applied.items():
        if version not in known:
            raise SchemaMismatch(
                f"the database is at version {version}, newer than this package", fix="update duly"
            )
        if known[version].checksum != checksum:
            raise SchemaMismatch(
                f"migration {version} was applied in another form",
                fix="restore its file: migrations never change",
            )
    return [m for m in known.values() if m.version not in applied]


def _apply(conn: psycopg.Connection[tuple[object, ...]], migration: Migration) -> None:
    with conn.transaction():
        if migration.version > 1:  # the first one makes the owner
            conn.execute("set local role duly_owner")
        conn.execute(sql.SQL(migration.text))
        conn.execute("reset role")
        conn.execute(
            "insert into duly.schema_versions (version, name, checksum) values (%s, %s, %s)",
            [migration.version, migration.name, migration.checksum],
        )
