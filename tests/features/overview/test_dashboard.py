"""What an overview shows: right, an org's own, and with what the queues did minute by minute."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Duly, context, errors
from duly.core.freshness import FreshnessLabel
from duly.features.overview import dashboard as control
from duly.features.overview.service import Overview
from duly.worker import queue_stats as worker_minutes
from tests.features.jobs.test_job_lists import freshness
from tests.features.overview.filled import all_of, fill
from tests.worker.site import ADMIN, make_orgs
from tests.worker.working import ONCE, working

_ALERT = """
    insert into duly.alerts (org_id, alert_id, kind, target, severity, summary)
    select %s, gen_random_uuid(), k, 't', case k when 'no_worker' then 'critical' else 'warning' end, k
    from unnest(%s::text[]) k
"""


async def test_what_workers_did_is_shown_by_queue_and_minute(app: Duly) -> None:
    mine, theirs = await make_orgs(app, 2)

    @app.job("board.well", queue="q:exports")
    async def well(n: int) -> None: ...

    @app.job("board.dies", retry=ONCE)
    async def dies(n: int) -> None:
        raise OSError("no")

    for org, n in ((mine, 3), (theirs, 2)):
        with context(org_id=org, actor=ADMIN):
            handles = await app.enqueue_many([kind.call(i) for kind in (well, dies) for i in range(n)])
        async with working(app):
            for handle in handles:
                await handle.wait(60)
    whole, part = await Overview(app).board(), await app.overview.board(str(mine))
    for board, n, started in ((whole, 5, 5), (part, 3, 0)):
        lines = {line.queue: line for line in board.queues}
        exports, default = lines["q:exports"], lines["q:default"]
        assert (exports.hour.started, exports.hour.completed, exports.hour.failed) == (started, n, 0)
        assert (default.hour.started, default.hour.completed, default.hour.failed) == (started, 0, n)
        assert sum(minute.completed for minute in exports.minutes[-3:]) == n
        assert sum(minute.ended for minute in board.minutes) == board.hour.ended == 2 * n
        for span in (exports.hour.wait(0.95), exports.hour.run(0.5), board.average_run):
            assert span is not None
            assert timedelta(0) < span < timedelta(minutes=1)
        assert lines["q:critical"].idle
        assert (board.failed.count, board.dead_letters.count) == (n, n)
        [kind] = board.kinds
        assert (kind.job_type, kind.error_class, str(kind.letters)) == ("board.dies", "OSError", str(n))
        assert (kind.orgs, board.since) == (2 if n == 5 else 1, board.looked_at - timedelta(hours=1))
    assert part.kinds[0].org_id == mine
    assert {letter.fingerprint for letter in whole.kinds} == {letter.fingerprint for letter in part.kinds}


async def test_the_board_tells_what_is_there_and_what_is_wrong(app: Duly, sql: psycopg.Connection) -> None:
    mine, theirs = await make_orgs(app, 2)
    fill(sql, mine, theirs)
    await app.queues.pause("q:planning", actor=ADMIN, reason="why")
    sql.execute(_ALERT, [mine, ["webhook_failing"]])
    sql.execute(_ALERT, [theirs, ["webhook_failing"]])
    whole, part = await Overview(app).board(), await Overview(app).board(mine)
    for board, orgs in ((whole, (mine, theirs)), (part, (mine,))):
        rows = [row for org in orgs for row in all_of(sql, org)]
        by_status = Counter(row["status"] for row in rows)
        assert board.waiting.count + board.scheduled.count == by_status["queued"]
        assert board.running.count == by_status["running"] + by_status["partial"]
        assert sum(line.running.count for line in board.queues) == board.running.count
        assert sum(line.scheduled.count for line in board.queues) == board.scheduled.count
        assert (board.failed.count, board.dead_letters.count) == (
            by_status["failed"], sum(row["outcome"] == "dead" for row in rows)
        )  # fmt: skip
        stale = sum(freshness(row) == "likely_stale" for row in rows)
        active = sum(by_status[name] for name in ("queued", "running", "partial"))
        assert board.bands[FreshnessLabel.LIKELY_STALE].count == stale
        assert board.bands[FreshnessLabel.FRESH_ACTIVE].count == active - stale
        lines = {line.queue: line for line in board.queues}
        assert (lines["q:planning"].paused_at is None, lines["q:default"].paused_at) == (False, None)
        assert lines["q:planning"].pause_reason == ("why" if board is whole else None)
        assert {alert.org_id for alert in board.alerts} == set(orgs)
        assert (board.workers, board.slots) == (1, 20)
    assert part.platform is None
    assert whole.platform is not None
    assert [worker.name for worker in whole.platform.workers] == ["w"]
    server = whole.platform.server
    assert server.bytes
    assert 0 < server.connections < server.max_connections
    with pytest.raises(errors.UnknownOrg):
        await app.overview.board(uuid.uuid4())


async def test_the_worst_comes_first_and_dead_letters_are_no_alerts_here(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    sql.execute(_ALERT, [org, ["relay_lag", "dead_letter", "no_worker", "dead_rate"]])
    for board in (await app.overview.board(), await app.overview.board(org)):
        kinds = [alert.kind.value for alert in board.alerts]
        assert (kinds[0], sorted(kinds)) == ("no_worker", ["dead_rate", "no_worker", "relay_lag"])


async def test_much_that_ended_is_told_from_later_on_and_completely(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(sql, org)
    monkeypatch.setattr(control, "_ENDED", 2)
    board = await Overview(app).board(org)
    assert board.since > board.looked_at - timedelta(hours=1)
    ended = sql.execute(
        "select count(*) from duly.job_states where org_id = %s and finished_at >= %s", [org, board.since]
    ).fetchone()
    assert ended == (board.hour.ended,)
    assert board.hour.started == 0


async def test_figures_that_cannot_be_written_wait_and_disturb_nobody(
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
