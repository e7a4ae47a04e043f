"""Replay a dead letter with a changed payload that its job type accepts."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.features.dead_letters.service import DeadLetters
from tests.features.dead_letters.dead_jobs import OPS, WHY, Bury, audited, dump_resolution_rows, history


async def test_a_fix_is_a_new_job_with_another_payload(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury("bob@")
    handle = await dead_letters.fix(acting, old, {"to": "bob", "size": "3"}, OPS, "the address was wrong")
    assert (await handle.status()).replay_of == old
    rows = sql.execute(
        "select payload, payload_hash from duly.job_records order by (job_id = %s)", [handle.job_id]
    ).fetchall()
    assert [row[0] for row in rows] == [{"to": "bob@", "size": 1}, {"to": "bob", "size": 3}]
    assert rows[0][1] != rows[1][1]
    letter = await dead_letters.get(acting, old)
    assert (letter.resolution, letter.successor_job_id) == ("fixed", handle.job_id)
    assert [row[0] for row in audited(sql)] == ["dead_letter.fixed"]
    assert history(sql, handle.job_id) == ["job.queued", "job.replayed"]


async def test_a_large_fix_goes_to_the_blobs(
    app: Duly, dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    handle = await dead_letters.fix(acting, await bury(), {"to": "ä" * 40_000}, OPS, WHY)
    plain = await send.enqueue("ä" * 40_000)
    rows = sql.execute(
        "select payload, payload_ref, payload_hash from duly.job_records where job_id = any (%s)",
        [[handle.job_id, plain.job_id]],
    ).fetchall()
    assert rows[0] == rows[1], "as enqueueing stores it"
    assert rows[0][0] == {}
    assert rows[0][1].startswith(f"blob:{acting}/")


async def test_a_small_fix_of_a_large_payload_lets_go_of_the_reference(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    handle = await dead_letters.fix(acting, await bury("ä" * 40_000), {"to": "b"}, OPS, WHY)
    row = sql.execute("select payload, payload_ref from duly.job_records where job_id = %s", [handle.job_id])
    assert row.fetchone() == ({"to": "b", "size": 1}, None)


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"to": 7}, "payload.to"),
        ({}, "payload.to"),
        ({"to": "b", "cc": "c"}, "payload.cc"),
        ({"to": "AKIA" + "A1B2C3D4E5F6G7H8"}, "payload.to"),
        ({"to": "\0"}, "payload.to"),
        (["to"], "payload"),
    ],
)
async def test_a_payload_that_the_job_type_rejects_writes_nothing(
    dead_letters: DeadLetters,
    bury: Bury,
    acting: uuid.UUID,
    sql: psycopg.Connection,
    payload: Any,
    field: str,
) -> None:
    old = await bury()
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.ContractError) as refused:
        await dead_letters.fix(acting, old, payload, OPS, WHY)
    assert refused.value.field == field
    assert dump_resolution_rows(sql) == before


async def test_an_undeclared_job_type_can_be_replayed_but_not_fixed(
    app: Duly, dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID
) -> None:
    old = await bury()
    other = Duly(settings=app.settings)
    with pytest.raises(errors.UnknownJobType):
        await DeadLetters(other).fix(acting, old, {"to": "b"}, OPS, WHY)
    assert (await DeadLetters(other).replay(acting, old, OPS, WHY)).created
    await other.close()
