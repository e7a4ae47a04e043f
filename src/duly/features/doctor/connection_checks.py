"""Whether the database is there, is the right one, and can be talked to as it must be."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg

from duly.core.errors import SchemaMismatch, StoreUnavailable
from duly.db import migrate
from duly.features.doctor import store as health
from duly.features.doctor.finding import Complaint, Finding, Verdict, failed, fine, judged, skipped
from duly.features.doctor.store import Pooling, Row
from duly.features.doctor.target import Patient

_OLDEST, _NEWEST = 15, 18
_HEARD_WITHIN = 2.0
_DIRECT = "set DULY_DATABASE_DIRECT_URL to the address of the server itself"


async def connection(patient: Patient) -> Finding:
    """Both addresses answer, as the same database, which may be written."""
    try:
        await patient.locate()
        direct = await health.server(await patient.conn())
    except StoreUnavailable as error:
        name = "DULY_DATABASE_DIRECT_URL" if patient.around.direct_is_set else "DULY_DATABASE_URL"
        return failed(error.message, error.fix or f"check {name} and the server")
    found = [*_version(direct), *await _other_address(patient, direct)]
    return judged(found, f"PostgreSQL {direct['version_name']}, {direct['database']} as {direct['login']}")


def _version(server: Row) -> Iterator[Complaint]:
    major, name = server["version"] // 10_000, server["version_name"]
    if major < _OLDEST:
        yield Complaint(Verdict.FAIL, f"PostgreSQL {name} is too old", f"use {_OLDEST} to {_NEWEST}")
    if major > _NEWEST:
        yield Complaint(
            Verdict.WARN, f"PostgreSQL {name} is newer than what this version knows", "update duly"
        )
    if server["standby"]:
        yield Complaint(Verdict.FAIL, "this is a standby: it cannot be written", "name the primary server")


async def _other_address(patient: Patient, direct: Row) -> list[Complaint]:
    if patient.url == patient.direct_url:
        return []
    try:
        async with health.connected(patient.url) as conn:
            other = await health.server(conn)
    except StoreUnavailable as error:
        said = f"DULY_DATABASE_URL: {error.message}"
        return [Complaint(Verdict.FAIL, said, "check DULY_DATABASE_URL and the pooler")]
    if (other["database"], other["started_at"]) == (direct["database"], direct["started_at"]):
        return []
    said = "DULY_DATABASE_URL and DULY_DATABASE_DIRECT_URL lead to different databases"
    return [Complaint(Verdict.FAIL, said, "let both lead to the same one")]


async def pooler(patient: Patient) -> Finding:
    """Behind a transaction pooler, there must be a way around it."""
    work = await health.find_pooling(patient.url)
    same = patient.url == patient.direct_url
    direct = work if same else await health.find_pooling(patient.direct_url)
    if Pooling.STATEMENT in (work, direct):
        fix = "let the pooler pool transactions: pool_mode = transaction"
        return failed("a pooler in statement mode: no transactions", fix, stops=True)
    if work is Pooling.TRANSACTION and not patient.around.direct_is_set:
        return failed(
            "DULY_DATABASE_URL goes through a transaction pooler, and there is no other way", _DIRECT
        )
    if direct is Pooling.TRANSACTION:
        return failed("DULY_DATABASE_DIRECT_URL goes through a transaction pooler itself", _DIRECT)
    if work is Pooling.NONE:
        return fine("none")
    return fine(f"{work} mode" + ("" if same else ", with a direct address beside it"))


async def listen(patient: Patient) -> Finding:
    """Workers hear of new jobs at once."""
    if await health.hears(patient.direct_url, patient.url, _HEARD_WITHIN):
        return fine("a notification arrived")
    return failed(f"no notification within {_HEARD_WITHIN:g} s: workers only poll", _DIRECT)


async def schema(patient: Patient) -> Finding:
    """The schema is of this package's version."""
    try:
        await asyncio.to_thread(migrate.check, patient.direct_url)
    except SchemaMismatch as error:
        return failed(error.message, error.fix or "run `duly migrate`")
    except psycopg.errors.InsufficientPrivilege:
        return skipped("cannot be told: see login")
    return fine(f"version {migrate.migrations()[-1].version}")
