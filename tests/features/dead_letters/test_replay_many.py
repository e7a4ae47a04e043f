"""Many letters are replayed at a pace, each once."""

from __future__ import annotations

import asyncio
import uuid
from datetime import timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from duly import errors
from duly.core.outcome import ErrorInfo
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from duly.worker import claim as claims
from tests.db.stale_jobs import fail_waiting
from tests.features.dead_letters.dead_jobs import (
    OPS,
    WHY,
    Bury,
    audited,
    clone_letter,
    dump_resolution_rows,
    history,
)


async def test_many_letters_are_replayed_at_a_rate_without_a_running_process(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    buried = [await bury(str(n)) for n in range(5)]
    report = await dead_letters.replay_many(acting, per_second=0.5, actor=OPS, reason=WHY)
    snapshots = [await handle.status() for handle in report.replayed]
    assert [job.replay_of for job in snapshots] == buried, "the oldest first"
    start = snapshots[0].run_at
    assert [job.run_at - start for job in snapshots] == [timedelta(seconds=2 * n) for n in range(5)]
    assert report.last_run_at == snapshots[-1].run_at
    assert report.left == {}
    assert sql.execute("select job_id from duly.ready").fetchall() == [(snapshots[0].job_id,)]
    assert sql.execute("select count(*) from duly.scheduled").fetchone() == (4,)
    assert {row[7] for row in audited(sql)} == {str(job.job_id) for job in snapshots}
    for job in snapshots:
        assert history(sql, job.job_id) == ["job.queued", "job.replayed"]
    async with database.engine() as conn:
        await conn.execute(
            "select set_config('duly.now', %s, true)", [(start + timedelta(seconds=5)).isoformat()]
        )
        assert await claims.promote_due(conn, limit=10) == 2, "two more are due by then"


async def test_a_paced_replay_can_be_canceled_and_failed_before_its_time(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    for n in range(3):
        await bury(str(n))
    _, second, third = (
        await dead_letters.replay_many(acting, per_second=0.01, actor=OPS, reason=WHY)
    ).replayed
    assert await second.cancel("never mind") == "canceled"
    async with database.engine() as conn:
        assert await fail_waiting(conn, acting, third.job_id)
    assert sql.execute("select count(*) from duly.scheduled").fetchone() == (0,)
    assert history(sql, second.job_id)[-1] == "job.canceled"
    assert history(sql, third.job_id)[-1] == "job.failed"


async def test_only_letters_of_the_filter_are_replayed(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID
) -> None:
    await bury("a")
    timeouts = [await bury(str(n), error=ErrorInfo("timeout", "slow", "TimeoutError")) for n in range(3)]
    kind = (await dead_letters.get(acting, timeouts[0])).fingerprint
    nothing = await dead_letters.replay_many(
        acting, job_type="mail.read", per_second=9, actor=OPS, reason=WHY
    )
    assert nothing.replayed == ()
    report = await dead_letters.replay_many(
        acting, fingerprint=kind, per_second=9, limit=2, actor=OPS, reason=WHY
    )
    assert [(await handle.status()).replay_of for handle in report.replayed] == timeouts[:2]
    assert len((await dead_letters.list(acting)).letters) == 2


async def test_the_rate_is_kept_over_several_transactions(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    clone_letter(sql, await bury(), 1200)
    report = await dead_letters.replay_many(acting, per_second=10, limit=1100, actor=OPS, reason=WHY)
    assert len(report.replayed) == 1100
    rows = sql.execute(
        "select job_id, run_at from duly.job_records where replay_of is not null order by run_at"
    ).fetchall()
    assert [row[0] for row in rows] == [handle.job_id for handle in report.replayed]
    gaps = [after[1] - before[1] for before, after in pairwise(rows)]
    assert min(gaps) >= timedelta(seconds=0.0999)
    assert len(audited(sql)) == 1100
    assert len((await dead_letters.list(acting, limit=500)).letters) == 101


async def test_concurrent_replays_of_many_replay_each_letter_once(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    clone_letter(sql, await bury(), 300)
    reports = await asyncio.gather(
        *(dead_letters.replay_many(acting, per_second=100, actor=OPS, reason=WHY) for _ in range(3))
    )
    made = [handle.job_id for report in reports for handle in report.replayed]
    assert len(made) == len(set(made))
    # A letter that another was about to replay is skipped: together they have all of them.
    assert len(made) == 301
    assert sql.execute("select count(distinct replay_of) from duly.job_records").fetchone() == (301,)


async def test_letters_of_a_held_run_identity_stay_open(
    dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID
) -> None:
    nightly = [await bury(str(n), run_identity="nightly") for n in range(2)]
    hourly = await bury("h", run_identity="hourly")
    free = await bury("x")
    active = await send.options(run_identity="hourly").enqueue("z")
    report = await dead_letters.replay_many(acting, per_second=1, actor=OPS, reason=WHY)
    assert [(await handle.status()).replay_of for handle in report.replayed] == [nightly[0], free]
    assert report.left == {
        nightly[1]: "another letter with its run identity comes first",
        hourly: f"its run identity is held by {active.job_id}",
    }
    assert {x.job_id for x in (await dead_letters.list(acting)).letters} == {nightly[1], hourly}


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        *(("per_second", {"per_second": x}) for x in (0, -1, float("nan"), float("inf"), 1e-9, "1", True)),
        *(("limit", {"per_second": 1, "limit": x}) for x in (0, 1.5, 100_001)),
        ("reason", {"per_second": 1, "reason": ""}),
        ("reason", {"per_second": 1, "reason": None}),
        ("actor", {"per_second": 1, "actor": None}),
    ],
)
async def test_invalid_arguments_of_a_replay_are_named_and_change_nothing(
    dead_letters: DeadLetters,
    bury: Bury,
    acting: uuid.UUID,
    sql: psycopg.Connection,
    field: str,
    arguments: dict[str, Any],
) -> None:
    await bury()
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.ContractError) as refused:
        await dead_letters.replay_many(acting, **{"actor": OPS, "reason": WHY, **arguments})
    assert refused.value.field == field
    assert dump_resolution_rows(sql) == before


@pytest.mark.parametrize("action", ["replay", "discard", "fix", "rerun"])
async def test_every_change_requires_an_actor_and_a_reason(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, action: str
) -> None:
    old = await bury()
    arguments: list[Any] = [acting, old, *([{"to": "b"}] if action == "fix" else [])]
    for actor, reason, field in [(None, WHY, "actor"), (OPS, None, "reason"), (OPS, "x" * 501, "reason")]:
        with pytest.raises(errors.ContractError) as refused:
            await getattr(dead_letters, action)(*arguments, actor, reason)
        assert refused.value.field == field
