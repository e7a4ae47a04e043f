"""Enqueueing inside the caller's own transaction, on whatever connection they have.

The statement is the same everywhere; only how a driver takes parameters differs. Kinds are told by
the module that made the connection, so that no driver has to be installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from psycopg.rows import tuple_row

from duly.client.counted import counted
from duly.model.errors import ContractError
from duly.model.job import JobSpec
from duly.store.jobs import Written, encode
from duly.store.refusals import translate

# The wake-up is part of the caller's transaction: it goes out when, and only if, that commits.
_SQL = "select job_id::text, created from duly.enqueue_jobs({}, {}, {}, true) order by ord"
_FORMAT = _SQL.format("%s::uuid", "%s::jsonb", "%s::json")
_NUMBERED = _SQL.format("$1::text::uuid", "$2::text::jsonb", "$3::text::json")
_NAMED = _SQL.format("cast(:org_id as uuid)", "cast(:policies as jsonb)", "cast(:jobs as json)")
_KINDS = "psycopg, asyncpg, SQLAlchemy or Django"
_LIBRARIES = {"psycopg", "asyncpg", "sqlalchemy", "django"}
# Not pools and engines: they would write outside of the caller's transaction.
_CONNECTIONS = {
    *("Connection", "AsyncConnection", "Session", "AsyncSession", "scoped_session", "async_scoped_session"),
    *("PoolConnectionProxy", "ConnectionProxy", "DatabaseWrapper"),
}


async def enqueue(conn: Any, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
    """Write the jobs on an async connection; nothing is committed here."""
    written = await _enqueue(conn, org_id, specs)
    counted(specs, written)
    return written


async def _enqueue(conn: Any, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
    parameters = str(org_id), *encode(specs)
    with _translated():
        match _kind(conn):
            case "psycopg", "AsyncConnection":
                cursor = await conn.cursor(row_factory=tuple_row).execute(_FORMAT, parameters)
                return _written(await cursor.fetchall())
            case "asyncpg", "Connection" | "PoolConnectionProxy":
                return _written(await conn.fetch(_NUMBERED, *parameters))
            case "sqlalchemy", "AsyncConnection" | "AsyncSession" | "async_scoped_session":
                return _written(await conn.execute(*_named(parameters)))
            case kind, name:
                raise _unfit(kind, name, "async", "enqueue_sync")


def enqueue_sync(conn: Any, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
    """Write the jobs on a plain connection; nothing is committed here."""
    written = _enqueue_sync(conn, org_id, specs)
    counted(specs, written)
    return written


def _enqueue_sync(conn: Any, org_id: UUID, specs: Sequence[JobSpec]) -> list[Written]:
    parameters = str(org_id), *encode(specs)
    with _translated():
        match _kind(conn):
            case "psycopg", "Connection":
                return _written(conn.cursor(row_factory=tuple_row).execute(_FORMAT, parameters).fetchall())
            case "sqlalchemy", "Connection" | "Session" | "scoped_session":
                return _written(conn.execute(*_named(parameters)))
            case "django", _:
                with conn.cursor() as cursor:
                    cursor.execute(_FORMAT, parameters)
                    return _written(cursor.fetchall())
            case kind, name:
                raise _unfit(kind, name, "plain", "await enqueue")


def _kind(conn: Any) -> tuple[str, str]:
    """Library and class of a connection, also of a subclass of it; no library for anything else."""
    for known in type(conn).__mro__:
        library, _, _ = known.__module__.partition(".")
        if library in _LIBRARIES and known.__name__ in _CONNECTIONS:
            return library, known.__name__
    return "", type(conn).__name__


def _unfit(kind: str, name: str, wanted: str, other: str) -> ContractError:
    if kind:
        return ContractError(f"{kind} {name} is not a {wanted} connection", field="conn", fix=f"use {other}")
    return ContractError(f"cannot enqueue on a {name}", field="conn", fix=f"pass a connection of {_KINDS}")


def _named(parameters: tuple[str, str, str]) -> tuple[Any, dict[str, str]]:
    from sqlalchemy import text

    return text(_NAMED), dict(zip(("org_id", "policies", "jobs"), parameters, strict=True))


def _written(rows: Any) -> list[Written]:
    return [Written(UUID(str(row[0])), bool(row[1])) for row in rows]


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        known = translate(error)
        if known is None:
            raise
        raise known from error
