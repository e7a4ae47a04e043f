"""Many endpoints, many deliveries: each endpoint and org gets its share, and no more."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from duly import Duly
from duly.db.database import Database
from duly.features.events.relay import Relay
from duly.features.webhooks import delivery_store as deliveries
from duly.maintenance.loop import run_chores
from tests.features.events.relaying import relay_all
from tests.features.webhooks.delivering import Conn, Make
from tests.features.webhooks.receiver import Receiver
from tests.features.webhooks.sample_events import endpoint, job, messages


async def test_a_stalling_receiver_or_a_large_backlog_does_not_delay_another_endpoint(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    for _ in range(2):
        endpoint(sql, org, receiver.url("/stall"))
    jobs = [await job(app, org) for _ in range(30)]
    await relay_all(app, sql)
    chore, stop = make(slots=12, timeout=timedelta(seconds=30)), asyncio.Event()
    running = asyncio.create_task(run_chores([Relay(app), chore], stop))
    await receiver.until(12)
    sql.execute("update duly.webhook_endpoints set event_types = '{none}'")
    endpoint(sql, org, receiver.url("/200"))
    walked = await job(app, org, "step.walk")
    async with asyncio.timeout(10):
        while ("delivered",) not in messages(sql, "status"):
            await asyncio.wait([running], timeout=0.02)
    stop.set()
    await running
    paths = Counter(got.path for got in receiver.received)
    assert 12 <= paths["/stall"] <= 16, "each has no more than its share"
    counted = "select status, count(*), count(held_by), max(tries) from duly.webhook_deliveries group by 1"
    assert sorted(sql.execute(counted).fetchall()) == [
        ("delivered", 1, 0, 1),
        ("pending", 2 * len(jobs), 0, 0),
    ], "deliveries in flight are released at the end"
    assert [got.message["subject"] for got in receiver.received if got.path == "/200"] == [str(walked)]


async def test_a_half_open_endpoint_gets_one_probe_however_many_processes_claim(
    app: Duly, org: uuid.UUID, sql: Conn, database: Database
) -> None:
    endpoint(sql, org, "https://a")
    sql.execute("update duly.webhook_endpoints set failures = 5, shut_until = now()")
    for _ in range(3):
        await job(app, org)
    await relay_all(app, sql)
    limits: dict[str, Any] = {"limit": 8, "per_endpoint": 8, "per_org": 32, "lease": timedelta(minutes=1)}
    async with database.engine() as one, database.engine() as other:
        claims = [await deliveries.claim(conn, uuid.uuid4(), None, {}, **limits) for conn in (one, other)]
    async with database.engine() as conn:
        claims.append(await deliveries.claim(conn, uuid.uuid4(), None, {}, **limits))
    assert [[one.is_probe for one in claim.deliveries] for claim in claims] == [[True], [], []]


async def test_a_walk_past_deliveries_that_are_not_due_pauses_longer_each_time(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "_MAX_WALK", 2)
    ends = [endpoint(sql, org, receiver.url()) for _ in range(5)]
    await job(app, org)
    await relay_all(app, sql)
    sql.execute("update duly.webhook_deliveries set due_at = now() + interval '1 hour'")
    chore = make()
    rounds = [await chore.once() for _ in range(9)]
    pauses = [one for one in rounds if one]
    assert [bool(one) for one in rounds] == [False, False, True] * 3, "three steps, and a pause"
    assert pauses == sorted(set(pauses)), "longer each time"
    sql.execute("update duly.webhook_deliveries set due_at = now() where endpoint_id = %s", [ends[-1]])
    async with asyncio.timeout(10):
        while ("delivered",) not in messages(sql, "status"):
            await chore.once()


async def test_failing_endpoints_have_one_attempt_each_and_leave_half_of_the_slots(
    app: Duly, org: uuid.UUID, sql: Conn, database: Database
) -> None:
    failing = [endpoint(sql, org, f"https://{n}") for n in range(6)]
    sql.execute("update duly.webhook_endpoints set failures = 2, failing_since = now()")
    whole = endpoint(sql, org, "https://whole")
    for _ in range(4):
        await job(app, org)
    await relay_all(app, sql)
    limits: dict[str, Any] = {"limit": 8, "per_endpoint": 8, "per_org": 32, "lease": timedelta(minutes=1)}
    in_flight = {(org, failing[0]): 1}
    async with database.engine() as conn:
        claim = await deliveries.claim(conn, uuid.uuid4(), None, in_flight, max_failing=3, **limits)
    taken = Counter(one.key.endpoint_id for one in claim.deliveries)
    assert taken.pop(whole) == 2
    assert sorted(taken.values()) == [1, 1, 1]
    assert set(taken) < set(failing[1:]), "one has an attempt in flight"
    assert sum(one.failing for one in claim.deliveries) == 3


async def test_an_org_has_no_more_than_its_share_and_its_endpoints_divide_it(
    app: Duly, org: uuid.UUID, sql: Conn, database: Database
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    many = [endpoint(sql, org, f"https://{n}") for n in range(4)]
    single = endpoint(sql, other, "https://a")
    for owner in [org] * 8 + [other] * 8:
        await job(app, owner)
    await relay_all(app, sql)

    async def claimed(in_flight: dict[tuple[uuid.UUID, uuid.UUID], int]) -> Counter[uuid.UUID]:
        async with database.engine() as conn:
            limits: dict[str, Any] = {"limit": 64, "per_endpoint": 5, "per_org": 9}
            lease = timedelta(minutes=1)
            claim = await deliveries.claim(conn, uuid.uuid4(), None, in_flight, lease=lease, **limits)
        return Counter(one.key.endpoint_id for one in claim.deliveries)

    assert await claimed({}) == {**dict.fromkeys(many, 2), single: 5}
    in_flight = {(org, many[0]): 4, (org, many[1]): 2, (org, many[2]): 1}
    left = await claimed(in_flight)
    assert (left[many[3]], left[many[2]], left.total()) == (1, 1, 2 + left[single]), (
        "endpoints with the fewest in flight come first"
    )
    assert not set(await claimed({(org, many[0]): 5, (org, many[1]): 4})) & set(many)
