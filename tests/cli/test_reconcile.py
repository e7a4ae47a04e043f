"""`duly reconcile`, and its records in `duly jobs show`."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg

from duly import Actor, Duly, context
from tests.cli.conftest import Run
from tests.worker.working import claim_and_vanish


async def create_orphaned_job(app: Duly, org: uuid.UUID, sql: psycopg.Connection[Any]) -> uuid.UUID:
    """Create a running job without worker and claim, whose attempt is older than the stale horizon."""

    @app.job("shop.greet")
    async def greet(name: str) -> str:
        return name

    with context(org_id=org, actor=Actor.user("u1")):
        handle = await greet.enqueue("Ada")
    await claim_and_vanish(app, handle.job_id)
    sql.execute("update duly.job_states set attempt_started_at = now() - interval '7 hours'")
    sql.execute("delete from duly.claims; delete from duly.workers")
    return handle.job_id


async def test_an_orphaned_job_is_repaired_and_its_record_is_listed(
    app: Duly, org: uuid.UUID, duly: Run, sql: psycopg.Connection[Any]
) -> None:
    job_id = await create_orphaned_job(app, org, sql)
    detail = (await duly("jobs", "show", job_id, "--org", org, "--json")).document
    assert detail["freshness"]["shown"] == "likely_stale"
    assert detail["freshness"]["threshold"] == 6 * 3600
    dry_run = (await duly("reconcile", "--dry-run", "--json")).document
    assert [(f["job_id"], f["healed"]) for f in dry_run["findings"]] == [(str(job_id), False)]
    repaired = await duly("reconcile")
    assert str(job_id) in repaired.out
    assert "run.stale_running" in repaired.out
    again = await duly("reconcile")
    assert (again.out, again.code) == ("nothing to repair\n", 0)
    detail = (await duly("jobs", "show", job_id, "--org", org, "--json")).document
    assert detail["freshness"]["shown"] == "reconciled_failed"
    [record] = detail["job"]["reconciliations"]
    assert (record["kind"], record["reason_code"]) == ("stale_running", "run.stale_running")
    assert record["evidence"]["threshold_seconds"] == 6 * 3600
    text = (await duly("jobs", "show", job_id, "--org", org)).out
    assert "by the reconciler" in text
    assert "stale_running" in text
    assert "reconciled_failed" in text
