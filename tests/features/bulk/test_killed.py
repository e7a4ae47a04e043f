"""A bulk action whose worker is killed continues on another worker, and nothing is done twice."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Duly, Status
from duly.features.bulk.service import Bulk
from duly.testing import FreshDatabase
from tests.features.bulk.conftest import End
from tests.features.dead_letters.dead_jobs import clone_letter
from tests.journeys.test_killed_workers import _sweep, worker

LETTERS = 1_000


async def test_every_dead_letter_is_replayed_once_although_the_worker_is_killed(
    app: Duly, bulk: Bulk, end: End, acting: uuid.UUID, fresh: FreshDatabase, sql: psycopg.Connection,
    tmp_path: Path,
) -> None:  # fmt: skip
    clone_letter(sql, await end("dead"), LETTERS - 1)
    sql.execute("delete from duly.claims")
    job_filter: Any = {"outcome": "dead"}
    handle = await bulk.start(
        acting, "replay", job_filter, actor=Actor.user("ops-1"), reason="again", per_second=0.001
    )
    replays = "select count(*), count(distinct replay_of) from duly.job_records where replay_of is not null"
    with worker(fresh, tmp_path) as process:
        while sql.execute(replays).fetchone() == (0, 0):
            pass
        process.kill()
        process.wait()
    replayed = sql.execute(replays).fetchone()
    assert replayed is not None
    assert 0 < replayed[0] < LETTERS
    await _sweep(app, sql)
    with worker(fresh, tmp_path):
        assert (await handle.wait(60)).status is Status.COMPLETED
    assert await handle.result() == {"verb": "replay", "done": LETTERS, "left": {}}
    assert sql.execute(replays).fetchone() == (LETTERS, LETTERS)
    entries = "select count(*) from duly.audit_entries where action = 'dead_letter.replayed'"
    assert sql.execute(entries).fetchone() == (LETTERS,)
