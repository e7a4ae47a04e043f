"""Enqueue calls: complete them, store large payloads as blobs, and write all in one statement.

On a connection of the caller the jobs are part of its transaction. The statement is the same for every
driver; only the parameters differ. The driver is recognised by the module of the connection's class, so that
none has to be installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

from psycopg.rows import tuple_row

from duly.core.errors import ContractError
from duly.core.job import JobSpec, Origin
from duly.core.payload import canonical_json
from duly.db.errors import translate_error
from duly.jobs.enqueue_batcher import count_enqueued
from duly.jobs.enqueue_options import new_ids
from duly.jobs.handle import Handle
from duly.jobs.job import Call, job_specs
from duly.jobs.resources import Resources
from duly.jobs.store import Differing, differing_jobs, encode_batch

if TYPE_CHECKING:
    from duly.jobs.application import App
    from duly.observability.traces import OpenSpan, Traces


R = TypeVar("R")


async def submit(app: App, calls: Sequence[Call[R]], conn: Any) -> list[Handle[R]]:
    """Enqueue the calls, in the transaction of `conn` if it is given."""
    if not calls:
        return []
    conn = _one_connection(calls, conn)
    org_id, specs = _specs(calls)
    resources = await app.resources()
    if resources.traces is None:
        return _handles(app, org_id, specs, await _write_jobs(resources, org_id, specs, conn))
    with enqueue_span(resources.traces, specs) as span:
        jobs = await _write_jobs(resources, org_id, span.specs, conn)
        return span.record(_handles(app, org_id, specs, jobs))


async def _write_jobs(resources: Resources, org_id: UUID, specs: list[JobSpec], conn: Any) -> Differing:
    specs = await _without_large_payloads(resources, specs)
    if conn is not None:
        return await enqueue_on_connection(conn, org_id, specs)
    return await resources.enqueue_batcher.write(org_id, specs)


def submit_sync(app: App, calls: Sequence[Call[R]], conn: Any) -> list[Handle[R]]:
    """Enqueue the calls from synchronous code. A given connection is used on the caller's own thread."""
    conn = _one_connection(calls, conn)
    if conn is None:
        return app.portal.run(submit(app, calls, None))
    if not calls:
        return []
    org_id, specs = _specs(calls)

    async def stored() -> tuple[Resources, list[JobSpec]]:
        resources = await app.resources()
        return resources, await _without_large_payloads(resources, specs)

    resources, specs = app.portal.run(stored())
    if resources.traces is None:
        return _handles(app, org_id, specs, enqueue_on_sync_connection(conn, org_id, specs))
    with enqueue_span(resources.traces, specs) as span:
        jobs = enqueue_on_sync_connection(conn, org_id, span.specs)
        return span.record(_handles(app, org_id, specs, jobs))


def _one_connection(calls: Sequence[Call[Any]], conn: Any) -> Any:
    for call in calls:
        given = call.options.conn
        if conn is None:
            conn = given
        elif given is not None and given is not conn:
            raise ContractError(
                "the calls have different connections", field="conn", fix="enqueue on one at a time"
            )
    return conn


def _specs(calls: Sequence[Call[Any]]) -> tuple[UUID, list[JobSpec]]:
    specs = job_specs(calls, new_ids(len(calls)))
    origins = {id(spec.origin): spec.origin for spec in specs}.values()
    org_id = specs[0].origin.org_id
    if any(origin.org_id != org_id for origin in origins):
        raise ContractError(
            "the calls have different orgs", field="org_id", fix="enqueue for one org at a time"
        )
    return org_id, specs


async def _without_large_payloads(resources: Resources, specs: list[JobSpec]) -> list[JobSpec]:
    max_length = resources.payload_inline_max // 4  # a character has four bytes at most
    return [s if len(s.payload) <= max_length else await _without_large_payload(resources, s) for s in specs]


async def _without_large_payload(resources: Resources, spec: JobSpec) -> JobSpec:
    stored = await store_payload(resources, spec.origin.org_id, spec.payload)
    return spec if stored.payload_ref is None else spec._replace(**stored._asdict())


class StoredPayload(NamedTuple):
    """The columns of a payload: the payload itself, or the reference of its blob and its hash."""

    payload: str
    payload_ref: str | None = None
    payload_hash: str | None = None


async def store_payload(resources: Resources, org_id: UUID, payload: str) -> StoredPayload:
    """Store a large payload as a blob."""
    encoded = payload.encode()
    if len(encoded) <= resources.payload_inline_max:
        return StoredPayload(payload)
    ref = await resources.blobs.put(org_id, encoded)
    payload_hash = hashlib.sha256(canonical_json(json.loads(payload)).encode()).hexdigest()
    return StoredPayload("{}", str(ref), payload_hash)


def _handles(app: App, org_id: UUID, specs: Sequence[JobSpec], jobs: Differing) -> list[Handle[Any]]:
    return [
        Handle(app, org_id, spec.job_id, created=True)
        if job is None
        else Handle(app, org_id, job.job_id, created=job.created)
        for spec, job in zip(specs, jobs, strict=True)
    ]


# The notification is part of the caller's transaction: it is sent when, and only if, that commits.
_ARGUMENTS = {
    "org_id": "uuid",
    "policies": "json",
    "heads": "json",
    "job_ids": "uuid[]",
    "result_ids": "uuid[]",
    "payloads": "jsonb",
    "head_of": "integer[]",
    "keys": "text[]",
    "options": "json",
}
_SQL = "select ord, job_id::text, created from duly.enqueue_batch({}, true)"
_FORMAT = _SQL.format(", ".join(f"%s::{kind}" for kind in _ARGUMENTS.values()))
_NUMBERED = _SQL.format(
    ", ".join(f"${number}::text::{kind}" for number, kind in enumerate(_ARGUMENTS.values(), 1))
)
_NAMED = _SQL.format(", ".join(f"cast(cast(:{name} as text) as {kind})" for name, kind in _ARGUMENTS.items()))
_Parameters = tuple[str | None, ...]
_KINDS = "psycopg, asyncpg, SQLAlchemy or Django"
_LIBRARIES = {"psycopg", "asyncpg", "sqlalchemy", "django"}
# Not pools and engines: they would write outside of the caller's transaction.
_CONNECTIONS = {
    *("Connection", "AsyncConnection", "Session", "AsyncSession", "scoped_session", "async_scoped_session"),
    *("PoolConnectionProxy", "ConnectionProxy", "DatabaseWrapper"),
}


async def enqueue_on_connection(conn: Any, org_id: UUID, specs: Sequence[JobSpec]) -> Differing:
    """Write the jobs on an async connection of the caller, without committing."""
    rows = await _write(conn, (str(org_id), *encode_batch(specs).values()))
    jobs = differing_jobs(len(specs), rows)
    count_enqueued(specs, jobs)
    return jobs


async def _write(conn: Any, parameters: _Parameters) -> Iterable[Sequence[Any]]:
    with _translated():
        match _kind(conn):
            case "psycopg", "AsyncConnection":
                cursor = await conn.cursor(row_factory=tuple_row).execute(_FORMAT, parameters)
                return await cursor.fetchall()  # type: ignore[no-any-return]
            case "asyncpg", "Connection" | "PoolConnectionProxy":
                return await conn.fetch(_NUMBERED, *parameters)  # type: ignore[no-any-return]
            case "sqlalchemy", "AsyncConnection" | "AsyncSession" | "async_scoped_session":
                return await conn.execute(*_named(parameters))  # type: ignore[no-any-return]
            case library, name:
                raise _unfit(library, name, "an async", "enqueue_sync")


def enqueue_on_sync_connection(conn: Any, org_id: UUID, specs: Sequence[JobSpec]) -> Differing:
    """Write the jobs on a synchronous connection of the caller, without committing."""
    jobs = differing_jobs(len(specs), _write_sync(conn, (str(org_id), *encode_batch(specs).values())))
    count_enqueued(specs, jobs)
    return jobs


def _write_sync(conn: Any, parameters: _Parameters) -> Iterable[Sequence[Any]]:
    with _translated():
        match _kind(conn):
            case "psycopg", "Connection":
                return conn.cursor(row_factory=tuple_row).execute(_FORMAT, parameters).fetchall()  # type: ignore[no-any-return]
            case "sqlalchemy", "Connection" | "Session" | "scoped_session":
                return conn.execute(*_named(parameters))  # type: ignore[no-any-return]
            case "django", _:
                with conn.cursor() as cursor:
                    cursor.execute(_FORMAT, parameters)
                    return cursor.fetchall()  # type: ignore[no-any-return]
            case library, name:
                raise _unfit(library, name, "a synchronous", "await enqueue")


def _kind(conn: Any) -> tuple[str, str]:
    """Return library and class of a connection or its base class; an empty library for anything else."""
    for base in type(conn).__mro__:
        library, _, _ = base.__module__.partition(".")
        if library in _LIBRARIES and base.__name__ in _CONNECTIONS:
            return library, base.__name__
    return "", type(conn).__name__


def _unfit(library: str, name: str, style: str, method: str) -> ContractError:
    if library:
        return ContractError(f"{library} {name} is not {style} connection", field="conn", fix=f"use {method}")
    return ContractError(f"cannot enqueue on a {name}", field="conn", fix=f"pass a connection of {_KINDS}")


def _named(parameters: _Parameters) -> tuple[Any, dict[str, str | None]]:
    from sqlalchemy import text

    return text(_NAMED), dict(zip(_ARGUMENTS, parameters, strict=True))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        translated = translate_error(error)
        if translated is None:
            raise
        raise translated from error


@dataclass(frozen=True, slots=True)
class EnqueueSpan:
    """The span of an enqueue, and its jobs as children of the span."""

    specs: list[JobSpec]
    _span: OpenSpan

    def record(self, handles: list[Handle[Any]]) -> list[Handle[Any]]:
        """Record the id of a single job; several jobs have spans of their own."""
        if len(handles) == 1:
            self._span.update({"duly.job_id": str(handles[0].job_id), "duly.created": handles[0].created})
        return handles


@contextmanager
def enqueue_span(traces: Traces, specs: Sequence[JobSpec]) -> Iterator[EnqueueSpan]:
    """Open the span of an enqueue of jobs of one org."""
    # A call without a traceparent belongs to the current trace, with the others that do not differ from it.
    named = {spec.origin.traceparent for spec in specs}
    given = None if None in named else specs[0].origin.traceparent
    with traces.enqueue(*_span_attributes(specs), given) as span:
        yield EnqueueSpan(_as_children(traces, specs, span.traceparent), span)


def _span_attributes(specs: Sequence[JobSpec]) -> tuple[str, dict[str, str | int]]:
    """Return the name of the span, and the attributes that all jobs share."""
    job_type, queue = specs[0].job_type, specs[0].policy.queue
    attributes: dict[str, str | int] = {"duly.org_id": str(specs[0].origin.org_id)}
    if len(specs) > 1:
        attributes["messaging.batch.message_count"] = len(specs)
    if any((spec.job_type, spec.policy.queue) != (job_type, queue) for spec in specs):
        return "enqueue", attributes
    of_all = {"duly.job_type": job_type, "duly.queue": queue, "messaging.destination.name": queue}
    return f"enqueue {job_type}", attributes | of_all


def _as_children(traces: Traces, specs: Sequence[JobSpec], traceparent: str | None) -> list[JobSpec]:
    """Return the jobs as children of the span; a job with another trace stays there."""
    if traceparent is None:
        return list(specs)
    moved: dict[int, Origin] = {}  # jobs of a batch share their origin, which makes their write faster
    for spec in specs:
        given = spec.origin
        if id(given) not in moved:
            stays = traces.is_other_trace(given.traceparent, traceparent)
            moved[id(given)] = given if stays else replace(given, traceparent=traceparent)
    return [spec._replace(origin=moved[id(spec.origin)]) for spec in specs]
