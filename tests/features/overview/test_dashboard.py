"""Dashboards of an org and of the installation, with the activity of queues by minute."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Duly, context, errors
from duly.core.freshness import FreshnessLabel
from duly.features.overview import dashboard as dashboard_module
from duly.features.overview.service import Overview
from duly.worker import queue_stats as worker_minutes
from tests.features.jobs.test_job_lists import freshness
from tests.features.overview.sample_jobs import all_of, fill
from tests.worker.blocking_jobs import ADMIN, create_orgs
from tests.worker.working import ONE_ATTEMPT, working

_ALERT = """
    insert into duly.alerts (org_id, alert_id, kind, target, severity, summary)
    select %s, gen_random_uuid(), k, 't', case k when 'no_worker' then 'critical' else 'warning' end, k
    from unnest(%s::text[]) k
"""


async def test_the_activity_of_workers_is_summed_by_queue_and_minute(app: Duly) -> None:
    mine, theirs = await create_orgs(app, 2)

    @app.job("board.well", queue="q:exports")
    async def well(n: int) -> None: ...

    @app.job("board.dies", retry=ONE_ATTEMPT)
    async def dies(n: int) -> None:
        raise OSError("no")

    for org, n in ((mine, 3), (theirs, 2)):
        with context(org_id=org, actor=ADMIN):
            handles = await app.enqueue_many([kind.call(i) for kind in (well, dies) for i in range(n)])
        async with working(app):
            for handle in handles:
                await handle.wait(60)
    whole, part = await Overview(app).dashboard(), await app.overview.dashboard(str(mine))
    for dashboard, n, started in ((whole, 5, 5), (part, 3, 0)):
        lines = {line.queue: line for line in dashboard.queues}
        exports, default = lines["q:exports"], lines["q:default"]
        assert (exports.hour.started, exports.hour.completed, exports.hour.failed) == (started, n, 0)
        assert (default.hour.started, default.hour.completed, default.hour.failed) == (started, 0, n)
        assert sum(minute.completed for minute in exports.minutes[-3:]) == n
        assert sum(minute.ended for minute in dashboard.minutes) == dashboard.hour.ended == 2 * n
        for span in (exports.hour.wait(0.95), exports.hour.run(0.5), dashboard.average_run):
            assert span is not None
            assert timedelta(0) < span < timedelta(minutes=1)
        assert lines["q:critical"].idle
        assert (dashboard.failed.count, dashboard.dead_letters.count) == (n, n)
        [kind] = dashboard.failures
        assert (kind.job_type, kind.error_class, str(kind.letters)) == ("board.dies", "OSError", str(n))
        assert (kind.orgs, dashboard.since) == (2 if n == 5 else 1, dashboard.looked_at - timedelta(hours=1))
    assert part.failures[0].org_id == mine
    assert {letter.fingerprint for letter in whole.failures} == {
        letter.fingerprint for letter in part.failures
    }


async def test_the_dashboard_has_the_counts_and_the_alerts(app: Duly, sql: psycopg.Connection) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    await app.queues.pause("q:planning", actor=ADMIN, reason="why")
    sql.execute(_ALERT, [mine, ["webhook_failing"]])
    sql.execute(_ALERT, [theirs, ["webhook_failing"]])
    whole, part = await Overview(app).dashboard(), await Overview(app).dashboard(mine)
    for dashboard, orgs in ((whole, (mine, theirs)), (part, (mine,))):
        rows = [row for org in orgs for row in all_of(sql, org)]
        by_status = Counter(row["status"] for row in rows)
        assert dashboard.waiting.count + dashboard.scheduled.count == by_status["queued"]
        assert dashboard.running.count == by_status["running"] + by_status["partial"]
        assert sum(line.running.count for line in dashboard.queues) == dashboard.running.count
        assert sum(line.scheduled.count for line in dashboard.queues) == dashboard.scheduled.count
        assert (dashboard.failed.count, dashboard.dead_letters.count) == (
            by_status["failed"], sum(row["outcome"] == "dead" for row in rows)
        )  # fmt: skip
        stale = sum(freshness(row) == "likely_stale" for row in rows)
        active = sum(by_status[name] for name in ("queued", "running", "partial"))
        assert dashboard.freshness[FreshnessLabel.LIKELY_STALE].count == stale
        assert dashboard.freshness[FreshnessLabel.FRESH_ACTIVE].count == active - stale
        lines = {line.queue: line for line in dashboard.queues}
        assert (lines["q:planning"].paused_at is None, lines["q:default"].paused_at) == (False, None)
        assert lines["q:planning"].pause_reason == ("why" if dashboard is whole else None)
        assert {alert.org_id for alert in dashboard.alerts} == set(orgs)
        assert (dashboard.workers, dashboard.slots) == (1, 20)
    assert part.platform is None
    assert whole.platform is not None
    assert [worker.name for worker in whole.platform.workers] == ["w"]
    server = whole.platform.server
    assert server.bytes
    assert 0 < server.connections < server.max_connections
    with pytest.raises(errors.UnknownOrg):
        await app.overview.dashboard(uuid.uuid4())


async def test_critical_alerts_come_first_and_dead_letters_are_left_out(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    sql.execute(_ALERT, [org, ["relay_lag", "dead_letter", "no_worker", "dead_rate"]])
    for dashboard in (await app.overview.dashboard(), await app.overview.dashboard(org)):
        kinds = [alert.kind.value for alert in dashboard.alerts]
        assert (kinds[0], sorted(kinds)) == ("no_worker", ["dead_rate", "no_worker", "relay_lag"])


async def test_with_many_ended_jobs_the_activity_begins_later_and_is_complete(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sql, org)
    monkeypatch.setattr(dashboard_module, "_MAX_ENDED_JOBS", 2)
    dashboard = await Overview(app).dashboard(org)
    assert dashboard.since > dashboard.looked_at - timedelta(hours=1)
    ended = sql.execute(
        "select count(*) from duly.job_states where org_id = %s and finished_at >= %s", [org, dashboard.since]
    ).fetchone()
    assert ended == (dashboard.hour.ended,)
    assert dashboard.hour.started == 0


async def test_queue_stats_that_cannot_be_written_are_written_later(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_minutes, "_WRITE_INTERVAL", 0.01)

    @app.job("board.well")
    async def well() -> None: ...

    sql.execute("alter table duly.queue_minutes rename to hidden")
    async with working(app) as worker:
        handle = await well.enqueue()
        assert (await handle.wait(60)).status == "completed"
        await worker.loop_events.wait("idle", worker.loop_events.counts["idle"] + 2)
        sql.execute("alter table duly.hidden rename to queue_minutes")
    for _ in range(2):
        await worker._queue_stats.write()  # nothing is written twice, and nothing changes by it
    sums: Any = sql.execute(
        "select sum(started), sum(completed), count(*) from duly.queue_minutes"
    ).fetchone()
    assert sums[:2] == (1, 1)
