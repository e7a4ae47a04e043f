"""Adapter sync: domain records and the status of their jobs agree."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Context, DomainRecord, Duly, Fail, JobSnapshot, errors
from duly.maintenance.adapter_sync import AdapterSync
from tests.worker.working import claim_and_vanish, dump_job_tables, event_types, settle_attempts, working

TABLES = """
    create table public.extractions (
        org_id uuid not null, id serial, job_id uuid not null, error text,
        state text not null default 'running');
    alter table public.extractions enable row level security, force row level security;
    create policy own on public.extractions using (org_id = duly.current_org());
    grant select, update on public.extractions to duly_tenant;
"""


class Extractions:
    """As a document system has them."""

    name = "extractions"

    async def find(self, conn: Any, limit: int) -> Sequence[DomainRecord]:
        rows = await (
            await conn.execute(
                "select id, job_id, state from public.extractions order by id limit %s", [limit]
            )
        ).fetchall()
        return [
            DomainRecord(str(row[0]), row[1], over=row[2] != "running", reason=f"the extraction is {row[2]}")
            for row in rows
        ]

    async def settle(self, conn: Any, record: DomainRecord, job: JobSnapshot | None) -> bool:
        state = "lost" if job is None else job.status
        done = await conn.execute(
            "update public.extractions set state = %s, error = %s where id = %s and state = 'running'",
            [state, job and job.error_code, int(record.record_id)],
        )
        return bool(done.rowcount)


@pytest.fixture(autouse=True)
def extractions(app: Duly, sql: psycopg.Connection[Any]) -> None:
    sql.execute(TABLES)
    app.adapt(Extractions())


@pytest.fixture
def extract(app: Duly) -> Any:
    @app.job("docs.extract")
    async def extract(ctx: Context, n: int) -> int:
        if n < 0:
            raise Fail("no such page", code="docs.no_page")
        return n

    return extract


def begin(sql: psycopg.Connection[Any], org: uuid.UUID, job_id: uuid.UUID) -> None:
    sql.execute("insert into public.extractions (org_id, job_id) values (%s, %s)", [org, job_id])


def states(sql: psycopg.Connection[Any]) -> list[Any]:
    return sql.execute("select state, error from public.extractions order by id").fetchall()


async def test_records_of_ended_jobs_are_settled(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    well, badly = [await extract.enqueue(n) for n in (1, -1)]
    for job_id in (well.job_id, badly.job_id, uuid.uuid4()):
        begin(sql, acting, job_id)
    await settle_attempts(app, 2)
    jobs = dump_job_tables(sql)
    found = await AdapterSync(app).sweep()
    assert [(f.record_id, f.status, f.healed) for f in found] == [
        ("1", "completed", True),
        ("2", "failed", True),
        ("3", "gone", True),
    ]
    assert states(sql) == [("completed", None), ("failed", "docs.no_page"), ("lost", None)]
    assert dump_job_tables(sql) == jobs, "ended jobs are not touched"
    audit = sql.execute(
        "select target_id, reason, detail ->> 'kind' from duly.audit_entries "
        "where action = 'record.reconciled' order by target_id"
    ).fetchall()
    assert audit == [(n, "run.adapter_out_of_sync", "adapter_sync") for n in ("1", "2", "3")]
    assert await AdapterSync(app).sweep() == []


async def test_an_ended_record_fails_its_queued_job(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    handle = await extract.enqueue(1)
    begin(sql, acting, handle.job_id)
    sql.execute("update public.extractions set state = 'withdrawn'")
    [finding] = await AdapterSync(app).sweep()
    job = await handle.status()
    assert (job.status, job.error_code) == ("failed", "run.adapter_out_of_sync")
    assert job.error_message == "the extraction is withdrawn"
    [record] = job.reconciliations
    assert (record.source, record.evidence["record_id"]) == ("adapter_reconciler", "1")
    assert finding.healed
    assert await event_types(handle) == ["queued", "reconciled", "failed"]
    assert await AdapterSync(app).sweep() == []


async def test_an_ended_record_fails_its_running_job(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    handle = await extract.enqueue(1)
    begin(sql, acting, handle.job_id)
    sql.execute("update public.extractions set state = 'withdrawn'")
    await claim_and_vanish(app, handle.job_id)
    [finding] = await AdapterSync(app).sweep()
    assert not finding.healed, "its handler may be about to return"
    [finding] = await AdapterSync(app, grace=timedelta(0)).sweep()
    assert finding.healed
    assert await event_types(handle) == ["queued", "started", "reconciled", "failed"]


async def test_a_dry_run_changes_nothing(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    waiting = await extract.enqueue(1)
    begin(sql, acting, waiting.job_id)
    sql.execute("update public.extractions set state = 'withdrawn'")
    begin(sql, acting, uuid.uuid4())
    before = dump_job_tables(sql), states(sql)
    found = await AdapterSync(app).sweep(dry_run=True)
    assert [(finding.record_id, finding.healed) for finding in found] == [("2", False), ("1", False)]
    assert (dump_job_tables(sql), states(sql)) == before


async def test_adapters_run_for_every_org_and_see_only_its_records(
    app: Duly, extract: Any, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duly.maintenance.adapter_sync._MAX_ORGS_PER_SWEEP", 2)
    orgs = [uuid.uuid4() for _ in range(5)]
    for org in orgs:
        await app.create_org(org, "Acme")
        begin(sql, org, uuid.uuid4())
    reconciler = AdapterSync(app)
    found = [finding for _ in range(4) for finding in await reconciler.sweep()]
    assert sorted(finding.org_id for finding in found) == sorted(orgs)
    assert {state for state, _ in states(sql)} == {"lost"}


async def test_an_adapter_that_fails_stops_neither_the_others_nor_the_sweep(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    class Broken(Extractions):
        name = "broken"

        async def find(self, conn: Any, limit: int) -> Sequence[DomainRecord]:
            raise RuntimeError("no table")

    app.adapters = {"broken": Broken(), **app.adapters}
    begin(sql, acting, uuid.uuid4())
    done = await app.reconcile()
    assert len(done.findings) == 1
    assert [trouble[:26] for trouble in done.troubles] == ["the adapter broken failed "]


async def test_an_adapter_that_finds_records_of_another_org_is_refused(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    await app.create_org(other := uuid.uuid4(), "Other")
    sql.execute("alter table public.extractions disable row level security")
    handle = await extract.enqueue(1)
    begin(sql, acting, handle.job_id)
    sync = AdapterSync(app)
    assert await sync.sweep() == []
    [trouble] = sync.troubles
    assert str(other) in trouble
    assert "another org" in trouble
    assert states(sql) == [("running", None)]


def test_the_name_of_an_adapter_is_unique(app: Duly) -> None:
    with pytest.raises(errors.ConfigurationError, match="extractions"):
        app.adapt(Extractions())


class _Nameless(Extractions):
    name = ""


class _Plain(Extractions):
    name = "plain"

    def find(self, conn: Any, limit: int) -> Any: ...


class _Short(Extractions):
    name = "short"

    async def settle(self, conn: Any) -> bool:  # type: ignore[override]
        return True


@pytest.mark.parametrize("wrong", [_Nameless(), Extractions, object(), _Plain(), _Short()])
def test_an_invalid_adapter_is_refused(app: Duly, wrong: Any) -> None:
    with pytest.raises(errors.ConfigurationError):
        app.adapt(wrong)


async def test_a_record_of_a_running_job_does_not_change(
    app: Duly, extract: Any, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    handle = await extract.enqueue(1)
    begin(sql, acting, handle.job_id)
    assert await AdapterSync(app).sweep() == []
    async with working(app):
        await handle.wait(30)
    assert states(sql) == [("running", None)]
