"""Many endpoints, many messages: everybody has a turn, and nobody more than their part."""

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
from tests.features.webhooks.stock import endpoint, job, messages


async def test_receivers_that_stall_or_have_much_to_get_do_not_hold_up_another(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    for _ in range(2):
        endpoint(sql, org, receiver.url("/stall"))
    jobs = [await job(app, org) for _ in range(30)]
    await relay_all(app, sql)
    chore, stop = make(most=12, limit=timedelta(seconds=30)), asyncio.Event()
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
    paths = Counter(got.path for got in receiver.got)
    assert 12 <= paths["/stall"] <= 16, "no more than its part for each"
    counted = "select status, count(*), count(held_by), max(tries) from duly.webhook_deliveries group by 1"
    assert sorted(sql.execute(counted).fetchall()) == [
        ("delivered", 1, 0, 1),
        ("pending", 2 * len(jobs), 0, 0),
    ], "what was under way is given back at the end"
    assert [got.said["subject"] for got in receiver.got if got.path == "/200"] == [str(walked)]


async def test_an_endpoint_on_trial_gets_one_message_however_many_ask(
    app: Duly, org: uuid.UUID, sql: Conn, database: Database
) -> None:
    endpoint(sql, org, "https://a")
    sql.execute("update duly.webhook_endpoints set failures = 5, shut_until = now()")
    for _ in range(3):
        await job(app, org)
    await relay_all(app, sql)
    asked: dict[str, Any] = {"after": None, "flying": {}, "free": 8, "each": 8, "each_org": 32}
    asked["lease"] = timedelta(minutes=1)
    async with database.engine() as one, database.engine() as other:
        walks = [await deliveries.claim(conn, uuid.uuid4(), **asked) for conn in (one, other)]
    async with database.engine() as conn:
        walks.append(await deliveries.claim(conn, uuid.uuid4(), **asked))
    assert [[one.on_trial for one in walk.claimed] for walk in walks] == [[True], [], []]


async def test_to_walk_past_many_that_wait_is_not_to_be_busy(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "_WALK", 2)
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


async def test_endpoints_that_fail_have_one_try_each_and_leave_half_of_the_places(
    app: Duly, org: uuid.UUID, sql: Conn, database: Database
) -> None:
    failing = [endpoint(sql, org, f"https://{n}") for n in range(6)]
    sql.execute("update duly.webhook_endpoints set failures = 2, failing_since = now()")
    whole = endpoint(sql, org, "https://whole")
    for _ in range(4):
        await job(app, org)
    await relay_all(app, sql)
    asked: dict[str, Any] = {"free": 8, "each": 8, "each_org": 32, "lease": timedelta(minutes=1)}
    flying = {(org, failing[0]): 1}
    async with database.engine() as conn:
        walk = await deliveries.claim(conn, uuid.uuid4(), None, flying, failing=3, **asked)
    taken = Counter(one.key.endpoint_id for one in walk.claimed)
    assert taken.pop(whole) == 2
    assert sorted(taken.values()) == [1, 1, 1]
    assert set(taken) < set(failing[1:]), "one has its try under way"
    assert sum(one.failing for one in walk.claimed) == 3


async def test_no_org_has_more_than_its_part_and_its_endpoints_share_that(
    app: Duly, org: uuid.UUID, sql: Conn, database: Database
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    many = [endpoint(sql, org, f"https://{n}") for n in range(4)]
    single = endpoint(sql, other, "https://a")
    for whose in [org] * 8 + [other] * 8:
        await job(app, whose)
    await relay_all(app, sql)

    async def claimed(flying: dict[tuple[uuid.UUID, uuid.UUID], int]) -> Counter[uuid.UUID]:
        async with database.engine() as conn:
            walk = await deliveries.claim(
                conn, uuid.uuid4(), None, flying, free=64, each=5, each_org=9, lease=timedelta(minutes=1)
            )
        return Counter(one.key.endpoint_id for one in walk.claimed)

    assert await claimed({}) == {**dict.fromkeys(many, 2), single: 5}
    flying = {(org, many[0]): 4, (org, many[1]): 2, (org, many[2]): 1}
    left = await claimed(flying)
    assert (left[many[3]], left[many[2]], left.total()) == (1, 1, 2 + left[single]), "who has least is next"
    assert not set(await claimed({(org, many[0]): 5, (org, many[1]): 4})) & set(many)
