"""`select duly.enqueue(...)`: enqueue and cancel from SQL."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg import sql as compose

from duly import Duly, Job

_CASTS = {
    "org_id": "uuid",
    "project_id": "uuid",
    "payload": "jsonb",
    "metadata": "jsonb",
    "priority": "smallint",
}
_VALID = {
    "job_type": "report.build",
    "payload": '{"year": 2026, "region": "DE"}',
    "actor_type": "user",
    "actor_id": "u1",
    "request_id": "req-1",
}


def call(conn: psycopg.Connection, **arguments: Any) -> uuid.UUID:
    """Call `duly.enqueue` with named arguments; return the job id."""
    named = compose.SQL(", ").join(
        compose.SQL("{} => {}::{}").format(
            compose.Identifier(name), compose.Placeholder(name), compose.SQL(_CASTS.get(name, "text"))
        )
        for name in arguments
        if name != "scheduled_for"
    )
    if "scheduled_for" in arguments:
        named += compose.SQL(", scheduled_for => %(scheduled_for)s")
    row = conn.execute(compose.SQL("select duly.enqueue({})").format(named), arguments).fetchone()
    assert row
    return row[0]


def refusal(conn: psycopg.Connection, **arguments: Any) -> tuple[str | None, ...]:
    """Return SQLSTATE, field and message of a refused call; assert that it has a hint."""
    with pytest.raises(psycopg.Error) as caught:
        call(conn, **arguments)
    diag = caught.value.diag
    assert diag.message_hint
    return diag.sqlstate, diag.message_detail, diag.message_primary


@pytest.fixture
async def build(app: Duly, acting: uuid.UUID) -> Job[..., None]:
    @app.job("report.build", category="planning", priority=3)
    async def build(region: str, year: int = 2026) -> None: ...

    @app.job("mail.send", category="notification")
    async def send(to: str) -> None: ...

    await app.publish()
    return build


async def test_sql_writes_the_same_rows_as_the_client(
    app: Duly, build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    by_client = await build.options(idempotency_key="a").enqueue("DE")
    by_sql = call(sql, org_id=acting, **_VALID, idempotency_key="b")
    assert by_sql.version == 7
    generated = {
        "job_id",
        "result_id",
        "idempotency_key",
        "created_at",
        "run_at",
        "occurred_at",
        "commit_xid",
    }
    generated |= {"first_seen_at", "last_seen_at", "expires_at"}
    generated |= {"event_id", "queued_at", "updated_at", "key_hash"}
    for table in ("jobs", "job_events", "idempotency_keys", "ready"):
        rows = [
            sql.execute(f"select to_jsonb(t) from duly.{table} t where job_id = %s", [job_id]).fetchone()
            for job_id in (by_client.job_id, by_sql)
        ]
        client, plain = ({k: v for k, v in row[0].items() if k not in generated} for row in rows if row)
        assert plain == client, table
    assert (await app.handle(by_sql).status()).result_id.int > 0


async def test_the_same_payload_is_the_same_job_from_either_side(
    app: Duly, build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    first = call(sql, org_id=acting, **_VALID)
    handle = await build.enqueue("DE")
    assert (handle.job_id, handle.created) == (first, False)
    second = await build.enqueue("FR")
    assert call(sql, org_id=acting, **{**_VALID, "payload": '{"region":"FR","year":2026}'}) == second.job_id
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (2,)


async def test_every_argument_of_sql_enqueue_is_stored(
    app: Duly, build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    project, at = uuid.uuid4(), datetime(2099, 1, 1, tzinfo=UTC)
    await app.create_project(acting, project, "Berlin")
    rest = {
        "correlation_id": "c-1",
        "subject_id": "doc-7",
        "idempotency_key": "order-1",
        "run_identity_hash": "abc",
        "priority": 9,
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    mail = {**_VALID, "job_type": "mail.send", "payload": '{"to": "a@example.com"}', **rest}
    call(sql, org_id=acting, project_id=project, scheduled_for=at, metadata='{"source": "sql"}', **mail)
    names = [*rest, "project_id", "run_at", "metadata"]
    row = sql.execute(f"select {', '.join(names)} from duly.jobs").fetchone()
    assert row == (*rest.values(), project, at, {"source": "sql"})


async def test_the_correlation_id_defaults_to_the_request_id(
    app: Duly, build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    job = await app.handle(call(sql, org_id=acting, **_VALID)).status()
    assert (job.correlation_id, job.queue, job.priority, job.max_attempts) == ("req-1", "q:planning", 3, 3)


@pytest.mark.parametrize("empty", [None, ""])
@pytest.mark.parametrize("field", ["org_id", "job_type", "payload", "actor_type", "actor_id", "request_id"])
async def test_each_missing_field_is_named(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection, field: str, empty: str | None
) -> None:
    whole = {"org_id": acting, **_VALID, field: None if field in ("org_id", "payload") else empty}
    assert refusal(sql, **whole) == ("DU422", field, "missing")


async def test_each_omitted_field_is_named(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    for field in ("actor_type", "actor_id", "request_id"):
        whole = {name: value for name, value in _VALID.items() if name != field}
        assert refusal(sql, org_id=acting, **whole) == ("DU422", field, "missing")


async def test_an_unknown_job_type_is_refused(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    unknown = {**_VALID, "job_type": "report.built"}
    expected = ("DU404", "job_type", "no job type 'report.built' is published")
    assert refusal(sql, org_id=acting, **unknown) == expected


async def test_an_unknown_org_is_refused(build: Job[..., None], sql: psycopg.Connection) -> None:
    assert refusal(sql, org_id=uuid.uuid4(), **_VALID)[:2] == ("DU404", "org_id")


async def test_a_payload_is_an_object_of_bounded_size(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    for wrong in ("[]", "1", '"text"', "null"):
        refused = refusal(sql, org_id=acting, **{**_VALID, "payload": wrong})
        assert refused == ("DU422", "payload", "not a JSON object")
    frame = len('{"region": ""}')
    fits = json.dumps({"region": "x" * (262_144 - frame)})
    assert call(sql, org_id=acting, **{**_VALID, "payload": fits})
    large = json.dumps({"region": "x" * (262_144 - frame + 1)})
    refused = refusal(sql, org_id=acting, **{**_VALID, "payload": large})
    assert refused == ("DU422", "payload", "larger than 262144 bytes")


async def test_only_declared_types_may_be_delayed(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    refused = refusal(sql, org_id=acting, scheduled_for=datetime(2099, 1, 1, tzinfo=UTC), **_VALID)
    assert refused == ("DU422", "scheduled_for", "'report.build' may not be delayed")


async def test_a_refused_job_writes_nothing(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    refusal(sql, org_id=acting, **{**_VALID, "payload": "[]"})
    with pytest.raises(psycopg.errors.ForeignKeyViolation):
        call(sql, org_id=acting, project_id=uuid.uuid4(), **_VALID)
    for table in ("job_records", "all_events", "key_ledger", "ready"):
        assert sql.execute(f"select count(*) from duly.{table}").fetchone() == (0,), table


def bind(conn: psycopg.Connection, org_id: uuid.UUID) -> None:
    conn.execute("set local role duly_tenant")
    conn.execute("select set_config('duly.org_id', %s, true)", [str(org_id)])


def cancel(conn: psycopg.Connection, org_id: uuid.UUID, job_id: uuid.UUID) -> str | None:
    row = conn.execute(
        "select duly.cancel(%s, %s, 'user', 'enough', 'user', 'u1')", [org_id, job_id]
    ).fetchone()
    assert row
    return row[0]


async def test_a_bound_session_acts_for_its_own_org(
    app: Duly, build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    with sql.transaction():
        bind(sql, acting)
        job_id = call(sql, org_id=acting, **_VALID)
        assert cancel(sql, acting, job_id) == "canceled"
    assert (await app.handle(job_id).status()).cancel_reason == "enough"


async def test_a_bound_session_acts_for_no_other_org(
    app: Duly, build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    foreign = await build.options(org_id=other).enqueue("DE")
    denied = ("DU403", "org_id", "this session belongs to another org")
    with sql.transaction(force_rollback=True):
        bind(sql, acting)
        assert refusal(sql, org_id=other, **_VALID) == denied
    with sql.transaction(force_rollback=True):
        bind(sql, acting)
        with pytest.raises(psycopg.Error) as caught:
            cancel(sql, other, foreign.job_id)
        assert (caught.value.sqlstate, caught.value.diag.message_detail) == denied[:2]
    with sql.transaction():
        bind(sql, acting)
        assert cancel(sql, acting, foreign.job_id) is None, "under a wrong org it does not exist"
    assert (await foreign.status()).status == "queued"


async def test_a_tenant_writes_through_the_functions_only(
    build: Job[..., None], acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    with sql.transaction(force_rollback=True):
        bind(sql, acting)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            sql.execute("delete from duly.key_ledger")


async def test_canceling_an_unknown_job_returns_null(acting: uuid.UUID, sql: psycopg.Connection) -> None:
    assert cancel(sql, acting, uuid.uuid4()) is None


async def test_canceling_without_an_org_is_refused(sql: psycopg.Connection) -> None:
    with pytest.raises(psycopg.Error) as caught:
        sql.execute("select duly.cancel(null, gen_random_uuid(), 'user', 'enough', 'user', 'u1')")
    assert (caught.value.sqlstate, caught.value.diag.message_detail) == ("DU422", "org_id")
