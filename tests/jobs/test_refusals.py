"""Invalid options, context values and settings are refused by name, before anything is written."""

from __future__ import annotations

import asyncio
import json
import math
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Actor, Duly, Job, context, errors
from duly.testing import FreshDatabase


@pytest.fixture
def build(app: Duly) -> Job[[str], None]:
    @app.job("report.build")
    async def build(region: str) -> None: ...

    return build


@pytest.mark.parametrize(
    ("option", "value", "field"),
    [
        ("subject_id", "a\0b", "subject_id"),
        ("subject_id", "\ud800", "subject_id"),
        ("idempotency_key", "", "idempotency_key"),
        ("idempotency_key", "k" * 501, "idempotency_key"),
        ("request_id", 7, "request_id"),
        ("correlation_id", "", "correlation_id"),
        ("actor", "u1", "actor"),
        ("actor", Actor.user(""), "actor.id"),
        ("traceparent", f"00-{'a' * 32}-{'b' * 16}-01\n", "traceparent"),
        ("metadata", {"password": "hunter2"}, "metadata.password"),
        ("metadata", {"n": math.nan}, "metadata.n"),
        ("metadata", {"at": object()}, "metadata"),
        ("metadata", ["a"], "metadata"),
    ],
)
def test_an_invalid_option_is_named(build: Job[[str], None], option: str, value: Any, field: str) -> None:
    with pytest.raises(errors.ContractError) as caught:
        build.options(**{option: value})
    assert caught.value.field == field
    assert caught.value.fix


async def test_a_scheduled_time_must_be_a_datetime(
    app: Duly, acting: uuid.UUID, build: Job[[str], None]
) -> None:
    with pytest.raises(errors.ContractError) as caught:
        await build.options(scheduled_for="2099").enqueue("DE")
    assert caught.value.field == "scheduled_for"


def test_context_values_are_validated_like_options() -> None:
    with pytest.raises(errors.ContractError, match="request_id"), context(request_id="\0"):
        pass


async def test_chained_options_are_merged(acting: uuid.UUID, build: Job[[str], None]) -> None:
    job = await (await build.options(subject_id="s").options(priority=7).enqueue("DE")).status()
    assert (job.subject_id, job.priority) == ("s", 7)


async def test_a_call_keeps_its_connection(
    app: Duly, acting: uuid.UUID, build: Job[[str], None], fresh: FreshDatabase, sql: psycopg.Connection
) -> None:
    async with await psycopg.AsyncConnection.connect(fresh.direct_url) as conn:
        await app.enqueue_many([build.options(conn=conn).call("DE")])
        await conn.rollback()
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (0,)


async def test_calls_on_several_connections_are_refused(
    app: Duly, acting: uuid.UUID, build: Job[[str], None], sql: psycopg.Connection
) -> None:
    with pytest.raises(errors.ContractError, match="different connections"):
        await app.enqueue_many([build.options(conn=sql).call("DE")], conn=object())


@pytest.mark.parametrize("name", ["schema", "copy", "json"])
def test_an_argument_may_have_the_name_of_a_models_method(app: Duly, name: str) -> None:
    program: dict[str, Any] = {}
    exec(f"def handler({name}: str) -> str:\n    return {name}", program)
    job = app.job("odd.name")(program["handler"])
    assert job.codec.decode(json.dumps({name: "x"})) == {name: "x"}


def test_decoding_a_result_of_another_type_raises(app: Duly) -> None:
    @app.job("count.it")
    def count() -> int: ...

    with pytest.raises(errors.ContractError) as caught:
        count.codec.decode_result("many")
    assert caught.value.field == "result"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("actor_type => 'robot'", "actor_type"),
        ("actor_type => 'user', priority => 5000::smallint", "priority"),
        ("actor_type => 'user', payload => '{\"db_password\": \"x\"}'", "payload"),
        ("actor_type => 'user', payload => '{\"note\": \"-----BEGIN RSA PRIVATE KEY-----\"}'", "payload"),
        ("actor_type => 'user', payload => '{\"accessToken\": \"x\"}'", "payload"),
        ("actor_type => 'user', payload => '{\"url\": \"postgres://u:p@h\"}'", "payload"),
        ("actor_type => 'user', metadata => '{\"password\": \"x\"}'", "metadata"),
        (f"actor_type => 'user', payload => '{{\"a\": {'[' * 33}{']' * 33}}}'", "payload"),
    ],
)
async def test_sql_enqueue_refuses_the_same_values(
    app: Duly, acting: uuid.UUID, build: Job[[str], None], sql: psycopg.Connection, change: str, field: str
) -> None:
    await app.publish()
    query = f"select duly.enqueue(%s, 'report.build', actor_id => 'u', request_id => 'r', {change})"
    with pytest.raises(psycopg.Error) as caught:
        sql.execute(query, [acting])
    assert (caught.value.sqlstate, caught.value.diag.message_detail) == ("DU422", field)


async def test_a_tenant_session_without_an_org_cannot_enqueue_or_cancel(
    app: Duly, acting: uuid.UUID, build: Job[[str], None], sql: psycopg.Connection
) -> None:
    handle = await build.enqueue("DE")
    await app.publish()
    sql.execute("set role duly_tenant")
    caller = "actor_type => 'user', actor_id => 'u', request_id => 'r'"
    for query, values in [
        (f"select duly.enqueue(%s, 'report.build', {caller})", [acting]),
        ("select * from duly.enqueue_jobs(%s, '[]', '[]')", [acting]),
        ("select duly.cancel(%s, %s, 'user', 'no', 'user', 'u')", [acting, handle.job_id]),
    ]:
        with pytest.raises(psycopg.Error) as caught:
            sql.execute(query, values)
        assert caught.value.sqlstate == "DU403"


async def test_closing_an_app_that_never_connected_succeeds() -> None:
    app = Duly(database_url="postgresql://none@127.0.0.1:1/none", pool_timeout=0.1)
    with pytest.raises(errors.StoreUnavailable, match="DULY_DATABASE_URL"):
        await app.resources()
    await app.close()


async def test_an_invalid_blobs_url_is_refused_by_name(
    app: Duly, sql: psycopg.Connection, fresh: FreshDatabase
) -> None:
    broken = Duly(database_url=fresh.direct_url, blobs_url="nonsense://x")
    with pytest.raises(errors.ConfigurationError, match="blobs_url"):
        await broken.resources()


def test_connections_of_a_closed_event_loop_are_released(
    fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path
) -> None:
    app = Duly(database_url=fresh.direct_url, blobs_url=str(tmp_path))
    for _ in range(5):
        asyncio.run(app.create_org(uuid.uuid4(), "Acme"))
    others = "from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
    assert sql.execute(f"select count(*) {others} and state is not null").fetchone()[0] <= 2
    asyncio.run(app.close())


async def test_a_sync_call_on_the_portals_own_thread_is_refused(app: Duly, acting: uuid.UUID) -> None:
    async def inside() -> None:
        app.handle_sync(uuid.uuid4()).status()

    with pytest.raises(errors.ConfigurationError, match="await"):
        await asyncio.to_thread(app.portal.run, inside())
    await asyncio.to_thread(app.close_sync)


@pytest.mark.parametrize(
    ("policy", "field"),
    [({"queue": "nope"}, "queue"), ({"queue": "q:deadletter"}, "queue"), ({"ledger_ttl": -1}, "ledger_ttl")],
)
async def test_an_invalid_policy_of_a_client_is_refused(
    app: Duly, acting: uuid.UUID, build: Job[[str], None], sql: psycopg.Connection, policy: dict, field: str
) -> None:
    policies = json.dumps([{**build.policy.model_dump(mode="json"), **policy}])
    with pytest.raises(psycopg.Error) as caught:
        sql.execute("select * from duly.enqueue_jobs(%s, %s, '[]')", [acting, policies])
    assert (caught.value.sqlstate, caught.value.diag.message_detail) == ("DU422", field)
