"""Relay and deliverer under kill -9 at a hundred random points, while events are committed and rolled back.

Every committed event that an endpoint selects is delivered, those of a job in order; no other event is.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import uuid
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Duly, context
from duly.db.database import Database
from duly.maintenance.loop import run_chores
from duly.testing import FreshDatabase
from tests.db.open_transactions import wait_for_transactions
from tests.features.webhooks.receiver import Received, Receiver, receiving
from tests.features.webhooks.sample_events import endpoint
from tests.journeys.relay_killer import chores, make_app

SEED = 20260701
KILLERS, KILLS, WRITERS, JOBS = 2, 50, 3, 12
ENDS = ("job.completed", "job.failed")
KINDS = (*ENDS, "job.started", "job.progressed", "job.retried")
EVENT = (
    "insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, "
    "actor_type, actor_id) select %(org)s, %(job)s, max(event_seq) + 1, %(kind)s, 'running', %(mark)s, "
    "duly.now(), 'user', 'u1' from duly.all_events where org_id = %(org)s and job_id = %(job)s"
)
LOCK = "select pg_advisory_xact_lock(hashtext(%s::text))"
Event = tuple[str, int, int]
"""A job, the number of the event, and the mark of its writer: numbers are assigned again after a rollback."""


class Writers:
    """Write events of several jobs in a transaction, commit or roll back, until stopped."""

    def __init__(self, database: Database, jobs: list[tuple[uuid.UUID, uuid.UUID]]) -> None:
        self._database = database
        self._jobs = jobs
        self._marks = iter(range(1, 10**6))
        self.rolled_back = 0

    async def write(self, dice: random.Random, stop: asyncio.Future[Any]) -> None:
        while not stop.done():
            with suppress(ZeroDivisionError):
                await self._transaction(dice)
            await asyncio.wait([stop], timeout=dice.uniform(0, 0.03))

    async def _transaction(self, dice: random.Random) -> None:
        async with self._database.engine() as conn:
            for org, job in sorted(dice.sample(self._jobs, dice.randint(1, 4))):
                await conn.execute(LOCK, [job])
                values = {"org": org, "job": job, "kind": dice.choice(KINDS), "mark": next(self._marks)}
                await conn.execute(EVENT, values)
            if dice.random() < 0.25:
                self.rolled_back += 1
                raise ZeroDivisionError


async def test_committed_events_are_delivered_in_order_and_no_other_whenever_processes_are_killed(
    fresh: FreshDatabase, sql: psycopg.Connection[Any], database: Database, tmp_path: Path
) -> None:
    print("seed", SEED)
    dice = random.Random(SEED)
    app = make_app(fresh.url, fresh.direct_url, str(tmp_path / "blobs"))
    async with receiving() as receiver, app:
        ends, every, without_endpoint = [await _org(app) for _ in range(3)]
        endpoint(sql, ends, receiver.url("/200?ends"), *ENDS)
        endpoint(sql, every, receiver.url("/200?every"), "*")
        jobs = [(org, await _job(app, org)) for org in (ends, every, without_endpoint) for _ in range(JOBS)]
        writers = Writers(database, jobs)
        killing = asyncio.gather(*(_killed(fresh, tmp_path, SEED + n) for n in range(KILLERS)))
        writing = asyncio.gather(
            *(writers.write(random.Random(dice.random()), killing) for _ in range(WRITERS))
        )
        points = sum(await killing, Counter[str]())
        await writing
        await _drain(app, sql)
        assert points.total() == KILLERS * KILLS
        assert points["idle"] < 0.1 * points.total(), points
        assert writers.rolled_back > 50
        _check(receiver, "/200?ends", _committed(sql, ends, ENDS))
        _check(receiver, "/200?every", _committed(sql, every, {*KINDS, "job.queued"} - {"job.progressed"}))
        twice = len(receiver.received) - len({_event(got) for got in receiver.received})
        print(dict(points), len(receiver.received), "messages,", twice, "of them again")
        assert twice > 0, "some were killed between sending and settling"


async def _org(app: Duly) -> uuid.UUID:
    org = uuid.uuid4()
    await app.create_org(org, "Acme")
    return org


async def _job(app: Duly, org: uuid.UUID) -> uuid.UUID:
    if "step.take" not in app.registry:

        @app.job("step.take")
        async def take(n: str) -> None: ...

    with context(org_id=org, actor=Actor.user("u1")):
        return (await app.registry.get("step.take").enqueue(str(uuid.uuid4()))).job_id


async def _killed(fresh: FreshDatabase, tmp_path: Path, seed: int) -> Counter[str]:
    """Kill processes; count the points at which they were killed."""
    where = [fresh.url, fresh.direct_url, str(tmp_path / "blobs")]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.journeys.relay_killer", *where, str(KILLS), str(seed)),
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    output, _ = await process.communicate()
    return Counter(output.decode().splitlines())


async def _drain(app: Duly, sql: psycopg.Connection[Any]) -> None:
    """Relay and deliver everything that is left, without kills."""
    wait_for_transactions(sql)
    last = "select max(commit_xid::text::bigint) from duly.all_events"
    left = (
        f"select (select commit_xid::text::bigint from duly.relay_mark) < ({last}) "
        "or exists (select from duly.webhook_deliveries where status = 'pending')"
    )
    stop = asyncio.Event()
    running = asyncio.create_task(run_chores(chores(app), stop))
    async with asyncio.timeout(30):
        while sql.execute(left).fetchone() == (True,):
            await asyncio.wait([running], timeout=0.05)
    stop.set()
    await running


def _committed(sql: psycopg.Connection[Any], org: uuid.UUID, kinds: Any) -> set[Event]:
    query = "select job_id::text, event_seq, attempt from duly.job_events where org_id = %s"
    return set(sql.execute(f"{query} and event_type = any (%s)", [org, list(kinds)]).fetchall())


def _event(got: Received) -> Event:
    data = got.message["data"]
    return data["job_id"], data["event_seq"], data["attempt"]


def _check(receiver: Receiver, path: str, committed: set[Event]) -> None:
    ours = [got for got in receiver.received if got.path == path]
    events = [_event(got) for got in ours]
    assert set(events) == committed
    assert len({(got.headers["webhook-id"], got.body) for got in ours}) == len(committed), (
        "a repeated message is the same"
    )
    assert len(committed) > 100
    firsts: defaultdict[str, list[int]] = defaultdict(list)
    for job, seq, _ in dict.fromkeys(events):
        firsts[job].append(seq)
    assert [job for job, seqs in firsts.items() if seqs != sorted(seqs)] == []
