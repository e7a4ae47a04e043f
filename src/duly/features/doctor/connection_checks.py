"""Checks of the connection: both URLs, the server, the pooler, notifications and the schema."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import psycopg

from duly.core.errors import SchemaMismatch, StoreUnavailable
from duly.db import migrate
from duly.features.doctor import store
from duly.features.doctor.models import CheckOutcome, CheckProblem, failed, passed, result_of, skipped
from duly.features.doctor.store import Pooling, Row
from duly.features.doctor.target import Target

_OLDEST_MAJOR, _NEWEST_MAJOR = 15, 18
_NOTIFY_TIMEOUT = 2.0
_SET_DIRECT_URL = "set DULY_DATABASE_DIRECT_URL to the address of the server itself"


async def check_connection(target: Target) -> CheckOutcome:
    """Check that both URLs lead to the same writable database of a supported version."""
    try:
        await target.locate()
        server = await store.read_server(await target.conn())
    except StoreUnavailable as error:
        name = "DULY_DATABASE_DIRECT_URL" if target.settings.direct_is_set else "DULY_DATABASE_URL"
        return failed(error.message, error.fix or f"check {name} and the server")
    problems = [*_server_problems(server), *await _other_url_problems(target, server)]
    return result_of(
        problems, f"PostgreSQL {server['version_name']}, {server['database']} as {server['login']}"
    )


def _server_problems(server: Row) -> Iterator[CheckProblem]:
    major, name = server["version"] // 10_000, server["version_name"]
    if major < _OLDEST_MAJOR:
        yield CheckProblem(f"PostgreSQL {name} is too old", f"use {_OLDEST_MAJOR} to {_NEWEST_MAJOR}")
    if major > _NEWEST_MAJOR:
        message = f"PostgreSQL {name} is newer than {_NEWEST_MAJOR}, the newest tested version"
        yield CheckProblem(message, "update duly", fails=False)
    if server["standby"]:
        yield CheckProblem("the server is a read-only standby", "use the URL of the primary server")


async def _other_url_problems(target: Target, direct: Row) -> list[CheckProblem]:
    if target.url == target.direct_url:
        return []
    try:
        async with store.connect(target.url) as conn:
            other = await store.read_server(conn)
    except StoreUnavailable as error:
        message = f"DULY_DATABASE_URL: {error.message}"
        return [CheckProblem(message, "check DULY_DATABASE_URL and the pooler")]
    if (other["database"], other["started_at"]) == (direct["database"], direct["started_at"]):
        return []
    message = "DULY_DATABASE_URL and DULY_DATABASE_DIRECT_URL lead to different databases"
    return [CheckProblem(message, "set both to the same database")]


async def check_pooler(target: Target) -> CheckOutcome:
    """Check that a direct URL goes around a transaction pooler."""
    work = await store.detect_pooling(target.url)
    same = target.url == target.direct_url
    direct = work if same else await store.detect_pooling(target.direct_url)
    if Pooling.STATEMENT in (work, direct):
        message = "a pooler in statement mode allows no transactions"
        return failed(message, "set pool_mode = transaction in the pooler", blocks_database=True)
    if work is Pooling.TRANSACTION and not target.settings.direct_is_set:
        return failed(
            "DULY_DATABASE_URL goes through a transaction pooler, and there is no direct URL", _SET_DIRECT_URL
        )
    if direct is Pooling.TRANSACTION:
        return failed("DULY_DATABASE_DIRECT_URL goes through a transaction pooler", _SET_DIRECT_URL)
    if work is Pooling.NONE:
        return passed("none")
    return passed(f"{work} mode" + ("" if same else ", with a direct URL"))


async def check_listen(target: Target) -> CheckOutcome:
    """Check that notifications reach the direct URL: they wake workers for new jobs."""
    if await store.notification_arrives(target.direct_url, target.url, _NOTIFY_TIMEOUT):
        return passed("a notification arrived")
    return failed(f"no notification within {_NOTIFY_TIMEOUT:g} s: workers only poll", _SET_DIRECT_URL)


async def check_schema(target: Target) -> CheckOutcome:
    """Check that the schema has the version of this package."""
    try:
        await asyncio.to_thread(migrate.check, target.direct_url)
    except SchemaMismatch as error:
        return failed(error.message, error.fix or "run `duly migrate`")
    except psycopg.errors.InsufficientPrivilege:
        return skipped("cannot be checked: see login")
    return passed(f"version {migrate.migrations()[-1].version}")
