"""The overview of an org and of the installation: correct counts, per org and up to a limit."""

from __future__ import annotations

import uuid
from collections import Counter
from datetime import timedelta

import psycopg
import pytest

from duly import Duly, errors
from duly.features.overview import service as control
from duly.features.overview.service import Overview
from duly.features.queues import service as queues_service
from duly.jobs import stale_jobs
from tests.features.jobs.test_job_lists import freshness
from tests.features.overview.sample_jobs import all_of, fill
from tests.worker.blocking_jobs import create_orgs, fetch_value

HOUR = timedelta(hours=1)


async def test_the_overview_of_an_org_counts_its_own_jobs(app: Duly, sql: psycopg.Connection) -> None:
    mine, theirs = await create_orgs(app, 2)
    fill(sql, mine, theirs)
    fill(sql, theirs)
    rows = list(all_of(sql, mine))
    old = rows.pop(next(n for n, row in enumerate(rows) if row["outcome"] == "succeeded"))
    sql.execute(
        "update duly.job_states set finished_at = now() - interval '25 hours' where job_id = %s",
        [old["job_id"]],
    )
    overview = await Overview(app).org(str(mine))
    by_status = Counter(row["status"] for row in rows)
    waiting = sum(share.waiting.count for share in overview.waiting)
    assert waiting + overview.scheduled.count == by_status["queued"]
    ready = sql.execute(
        "select split_part(queue, '#', 1), count(*) from duly.ready where org_id = %s group by 1", [mine]
    )
    assert {share.queue: share.waiting.count for share in overview.waiting} == dict(ready.fetchall())
    assert (overview.running.count, overview.partial.count) == (by_status["running"], by_status["partial"])
    assert {status: count.count for status, count in overview.ended.items()} == {
        status: by_status[status] for status in ("completed", "failed", "canceled")
    }
    assert overview.dead_letters.count == sum(row["outcome"] == "dead" for row in rows)
    assert (overview.suspects.count, overview.suspects.at_least) == (
        sum(freshness(row) == "likely_stale" for row in rows), False,
    )  # fmt: skip
    assert (overview.workers, overview.slots) == (2, 40)
    oldest = max(row["created_at"] for row in rows if row["status"] == "queued") - overview.looked_at
    assert overview.oldest_waiting_age is not None
    assert -oldest < overview.oldest_waiting_age < 49 * HOUR


async def test_an_org_without_jobs_has_zero_counts_and_an_unknown_org_is_refused(
    app: Duly, org: uuid.UUID
) -> None:
    overview = await Overview(app).org(org)
    assert (overview.waiting, overview.oldest_waiting_age, overview.workers) == ((), None, 0)
    counts = [
        overview.scheduled,
        overview.running,
        overview.partial,
        overview.dead_letters,
        overview.suspects,
    ]
    assert {str(count) for count in [*counts, *overview.ended.values()]} == {"0"}
    with pytest.raises(errors.UnknownOrg):
        await Overview(app).org(uuid.uuid4())


async def test_the_overview_of_the_platform_counts_all_orgs(app: Duly, sql: psycopg.Connection) -> None:
    orgs = await create_orgs(app, 3)
    fill(sql, *orgs)
    fill(sql, orgs[0])
    rows = [row for org in orgs for row in all_of(sql, org)]
    long_ago = "update duly.event_log set occurred_at = now() - interval '25 hours' where job_id = %s"
    for status in ("failed", "canceled"):
        old = rows.pop(next(n for n, row in enumerate(rows) if row["status"] == status))
        sql.execute(long_ago, [old["job_id"]])
    by_status = Counter(row["status"] for row in rows)
    overview = await app.overview.platform()
    assert overview.orgs.count == 3
    queues = [queue for queue in overview.queues if queue.queue != "q:deadletter"]
    queued = sum(queue.waiting.count + queue.scheduled.count for queue in queues)
    running = sum(queue.running.count for queue in queues)
    assert (queued, running) == (by_status["queued"], by_status["running"] + by_status["partial"])
    assert (overview.failed.count, overview.canceled.count) == (by_status["failed"], by_status["canceled"])
    assert (overview.suspects.count, overview.suspects.at_least) == (
        sum(freshness(row) == "likely_stale" for row in rows), False,
    )  # fmt: skip
    assert (overview.workers, overview.slots) == (2, 40)
    assert overview.database_bytes == pytest.approx(
        fetch_value(sql, "select pg_database_size(current_database())"), rel=0.1
    )


async def test_counts_stop_at_their_limits(
    app: Duly, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    orgs = await create_orgs(app, 3)
    fill(sql, *orgs)
    for name, value in {"MAX_COUNT": 2, "_MAX_HEADS": 1, "_MAX_ASSESSED": 1}.items():
        monkeypatch.setattr(control, name, value)
    monkeypatch.setattr(stale_jobs, "_MAX_FOUND", 1)
    monkeypatch.setattr(queues_service, "MAX_COUNT", 2)
    mine = await Overview(app).org(orgs[0])
    shares = [share.waiting for share in mine.waiting]
    assert {str(count) for count in [*shares, mine.scheduled, *mine.ended.values()]} == {"2+"}
    assert (mine.suspects.count > 0, mine.suspects.at_least) == (True, True)
    all_of_them = await Overview(app).platform()
    for count in (all_of_them.orgs, all_of_them.failed, all_of_them.canceled):
        assert str(count) == "2+"
    assert (all_of_them.suspects.count > 0, all_of_them.suspects.at_least) == (True, True)
