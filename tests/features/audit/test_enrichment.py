"""The audit enrichment job: it writes one entry with the differences, and may do nothing else."""

from __future__ import annotations

import ast
import re
import threading
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

import duly
from duly import Actor, Duly, context, errors
from duly.db.database import Database
from duly.features.audit import enrichment
from duly.features.audit.enrichment import JOB_TYPE
from duly.features.audit.entries import OWN_TARGETS
from duly.features.audit.models import AuditEntry
from duly.features.audit.sealer import Sealer
from duly.jobs import store as job_store
from tests.db.open_transactions import wait_for_transactions
from tests.worker.working import run_until_ended, settle_attempts

ANNA = Actor.user("anna")
BEFORE = {"title": "Monday", "crew": [{"id": 1, "name": "Ada"}], "password": "hunter2", "salary": 10}
AFTER = {"title": "Tuesday", "crew": [], "password": "hunter3", "salary": 20}


async def entries(app: Duly, org: uuid.UUID, action: str = "run_sheet.changed") -> tuple[AuditEntry, ...]:
    return (await app.audit.list(org, action=action)).entries


async def describe(app: Duly, org: uuid.UUID, **changes: Any) -> Any:
    values = {"before": BEFORE, "after": AFTER, "actor": ANNA, "reason": "a swap", **changes}
    before, after = values.pop("before"), values.pop("after")
    return await app.audit.describe_change(org, "run_sheet", "rs-7", before, after, **values)


async def test_the_differences_become_one_entry_of_the_actor(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    with context(request_id="req-7", correlation_id="cor-7"):
        handle = await describe(app, org, locale="de", names={"title": "Titel"}, hide=["salary"])
    payload = sql.execute("select payload::text from duly.job_records").fetchall()
    assert not any(secret in str(payload) for secret in ("hunter", "10", "20"))
    ended = await run_until_ended(app, handle)
    assert (ended.status, ended.category, ended.queue) == ("completed", "audit", "q:default")
    [entry] = await entries(app, org)
    assert (entry.entry_id, entry.occurred_at) == (ended.job_id, ended.created_at)
    assert (entry.actor_type, entry.actor_id, entry.reason) == ("user", "anna", "a swap")
    assert (entry.target_type, entry.target_id) == ("run_sheet", "rs-7")
    assert (entry.request_id, entry.correlation_id) == ("req-7", "cor-7")
    assert entry.detail["summary"] == "4 Änderungen: crew, Titel, salary, password"
    assert [change["text"] for change in entry.detail["changes"]] == [
        "crew: „Ada“ entfernt",
        "Titel: „Monday“ → „Tuesday“",
        "salary: geändert (nicht gezeigt)",
        "password: geändert (nicht gezeigt)",
    ]
    wait_for_transactions(sql)
    await Sealer(app).once()
    assert (await app.audit.verify(org)).ok


async def test_equal_versions_write_no_entry(app: Duly, org: uuid.UUID) -> None:
    ended = await run_until_ended(app, await describe(app, org, after=BEFORE))
    assert ended.status == "completed"
    assert await entries(app, org) == ()


async def test_a_retry_after_a_lost_commit_writes_the_entry_once(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry is committed, and then the attempt fails."""
    tries = 0
    record = job_store.record_audit_entry

    async def record_and_fail(conn: Any, **values: Any) -> None:
        nonlocal tries
        tries += 1
        await record(conn, **values)
        if tries == 1:
            await conn.commit()
            raise ConnectionError("the answer is lost")

    monkeypatch.setattr(job_store, "record_audit_entry", record_and_fail)
    handle = await describe(app, org)
    await settle_attempts(app)
    sql.execute("update duly.scheduled set run_at = now()")
    assert (await run_until_ended(app, handle)).status == "completed"
    assert tries == 2
    assert len(await entries(app, org)) == 1


async def test_it_goes_with_the_transaction_of_the_change(app: Duly, org: uuid.UUID) -> None:
    for fails in (True, False):
        try:
            async with app.tenant_session(org) as conn:
                await describe(app, org, conn=conn, idempotency_key="rs-7:2")
                if fails:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            assert (await app.jobs.list(org)).jobs == ()
    [job] = (await app.jobs.list(org)).jobs
    again = await describe(app, org, idempotency_key="rs-7:2")
    assert (again.job_id, again.created) == (job.job_id, False)


async def test_large_versions_go_through_the_blobs(app: Duly, org: uuid.UUID) -> None:
    large = {"title": "Monday", "text": "word " * 20_000}
    handle = await describe(app, org, before=large, after={**large, "title": "Sunday"})
    assert (await handle.status()).request_payload_ref
    await run_until_ended(app, handle)
    [entry] = await entries(app, org)
    assert entry.detail["summary"] == "title: “Monday” → “Sunday”"


async def test_invalid_arguments_are_named(app: Duly, org: uuid.UUID) -> None:
    for wrong, field in (
        ({"locale": "fr"}, "locale"),
        ({"actor": None}, "actor"),
        ({"before": {"text": "x" * 300_000}}, "after"),
    ):
        with pytest.raises(errors.DulyError) as caught:
            await describe(app, org, **wrong)
        assert caught.value.field == field
    for target_type in ("Run Sheet", "", "webhook", "org", "key"):
        with pytest.raises(errors.DulyError) as caught:
            await app.audit.describe_change(org, target_type, "1", {}, {}, actor=ANNA)
        assert caught.value.field == "target_type"
    with pytest.raises(errors.UnknownOrg):
        await describe(app, uuid.uuid4())
    assert JOB_TYPE in app.registry
    with pytest.raises(errors.Unschedulable):
        await app.schedules.create(org, "s", cron="0 3 * * *", job_type=JOB_TYPE, actor=ANNA)


def test_every_target_type_of_duly_is_reserved() -> None:
    words: set[str] = set()
    own = Path(duly.__file__).parent
    for path in set(own.rglob("*.py")) - set(
        (own / "apps" / "documents").rglob("*.py")
    ):  # written as users would
        calls = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        for call in calls:
            if ast.unparse(call.func).rpartition(".")[2] in (
                "record_entry",
                "record_job_entry",
                "record_audit_entry",
            ):
                given = [*call.args, *(word.value for word in call.keywords if word.arg == "action")]
                said = " ".join(ast.unparse(one) for one in given)
                words |= set(re.findall(r"""["']([a-z_]+)\.""", said))
    assert words == OWN_TARGETS


async def test_versions_are_compared_outside_of_the_event_loop(
    app: Duly, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def record_thread(work: Any, *given: Any, **options: Any) -> Any:
        threads.append(threading.current_thread())
        return work(*given, **options)

    for name in ("mask_secrets", "compare"):
        monkeypatch.setattr(enrichment, name, partial(record_thread, getattr(enrichment, name)))
    assert (await run_until_ended(app, await describe(app, org))).status == "completed"
    assert len(threads) == 2
    assert threading.main_thread() not in threads


async def refused(database: Database, org: uuid.UUID, statement: str, *values: object) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.auditor(org) as conn:
            await conn.execute(statement, values)


async def test_the_auditor_role_may_only_append_for_its_org(
    app: Duly, org: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    sql.execute("create table public.run_sheets (org_id uuid); insert into public.run_sheets values (null)")
    sql.execute("grant select, insert, update, delete on public.run_sheets to duly_tenant, duly_engine")
    values = {"actor": ANNA, "action": "a.changed", "target_type": "a", "target_id": "1"}
    async with database.auditor(org) as conn:
        await job_store.record_audit_entry(conn, org_id=org, **values)
        row = await (await conn.execute("select count(*) from duly.audit_entries")).fetchone()
    assert row == (1,)
    for org_id in (other, uuid.uuid4()):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with database.auditor(org) as conn:
                await job_store.record_audit_entry(conn, org_id=org_id, **values)
    async with database.auditor(other) as conn:
        assert await (await conn.execute("select action from duly.audit_entries")).fetchall() == [
            ("org.created",)
        ]
    for verb in (
        "update duly.audit_entries set reason = 'x'",
        "delete from duly.audit_entries",
        "truncate duly.audit_entries",
    ):
        await refused(database, org, verb)
    tables = sql.execute(
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname in ('duly', 'public') and c.relkind in ('r', 'p', 'v') "
        "and c.relname <> 'audit_entries'"
    ).fetchall()
    assert len(tables) > 40
    for (table,) in tables:
        for right in ("select", "insert", "update", "delete", "truncate", "references", "trigger"):
            asked = "select has_table_privilege('duly_auditor', %s, %s)"
            assert sql.execute(asked, [table, right]).fetchone() == (False,), (table, right)
    await refused(database, org, "select * from public.run_sheets")
    await refused(database, org, "select duly.enqueue_jobs(%s, '[]', '[]')", org)
    await refused(database, org, "create table public.mine (n int)")


def test_no_role_may_rewrite_the_audit_trail(sql: psycopg.Connection) -> None:
    asked = """
        select role, tab, verb
        from unnest(array['duly_engine', 'duly_tenant', 'duly_operator', 'duly_auditor']) role,
             unnest(array['duly.audit_entries', 'duly.audit_seals']) tab,
             unnest(array['update', 'delete', 'truncate']) verb
        where has_table_privilege(role, tab, verb)
    """
    assert sql.execute(asked).fetchall() == []
