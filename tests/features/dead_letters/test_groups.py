"""Groups of dead letters by kind of failure, in one org and in all orgs."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, context, errors
from duly.core.outcome import Completed, ErrorInfo, Retried
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from tests.features.dead_letters.dead_jobs import (
    OPS,
    WHY,
    Bury,
    audited,
    clone_letter,
    dump_resolution_rows,
    end_one,
)

OTHER = ErrorInfo("other", "something else broke", "KeyError", {})


async def test_a_group_has_its_latest_letter_and_the_statuses_of_the_new_jobs(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database
) -> None:
    first, second, third = [await bury(name) for name in "abc"]
    other = await bury("d", error=OTHER)
    groups = {group.job_id: group.letters for group in await dead_letters.groups(acting)}
    assert groups == {third: 3, other: 1}
    kind = (await dead_letters.get(acting, first)).fingerprint
    canary = await dead_letters.replay(acting, third, OPS, WHY)
    group = await dead_letters.group(acting, kind)
    assert (group.letters, group.job_id, group.resolved, group.successor_statuses) == (
        2, second, {"replayed": 1}, {"queued": 1},
    )  # fmt: skip
    assert [(one.letter_job_id, one.job_id, one.status) for one in group.successors] == [
        (third, canary.job_id, "queued")
    ]
    assert await end_one(database, Completed(1)) == canary.job_id
    fixed = await dead_letters.fix(acting, second, {"to": "x"}, OPS, WHY)
    assert await end_one(database, Retried(OTHER)) == fixed.job_id
    await dead_letters.discard(acting, first, OPS, WHY)
    group = await dead_letters.group(acting, kind)
    assert (group.letters, group.first_dead_at) == (0, None)
    assert group.resolved == {"replayed": 1, "fixed": 1, "discarded": 1}
    assert group.successor_statuses == {"completed": 1, "dead": 1}
    assert group.error_message == "it broke"
    with pytest.raises(errors.NotFound):
        await dead_letters.group(acting, "nothing")


async def test_groups_of_all_orgs_are_separate_per_org(
    app: Duly, dead_letters: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID, database: Database
) -> None:
    mine = await bury()
    await bury("b", error=OTHER)
    theirs = uuid.uuid4()
    await app.create_org(theirs, "Other")
    with context(org_id=theirs):
        job = (await send.enqueue("c")).job_id
    await end_one(database, Retried(ErrorInfo("boom", "it broke", "ValueError", {"exceptions": []})))
    found = await dead_letters.groups_of_all_orgs()
    assert {(group.org_id, group.job_id) for group in found} >= {(acting, mine), (theirs, job)}
    assert len(found) == 3
    same = {group.fingerprint for group in found if group.error_code == "boom"}
    assert len(same) == 1
    with pytest.raises(errors.NotFound):
        await dead_letters.group(uuid.uuid4(), same.pop())


async def test_many_letters_are_discarded_oldest_first_and_each_is_audited(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    other = await bury("z", error=OTHER)
    job = await bury()
    clone_letter(sql, job, 600)
    kind = (await dead_letters.get(acting, job)).fingerprint
    assert await dead_letters.discard_many(acting, fingerprint=kind, limit=20, actor=OPS, reason=WHY) == 20
    assert await dead_letters.discard_many(acting, fingerprint=kind, actor=OPS, reason=WHY) == 581
    assert await dead_letters.discard_many(acting, fingerprint=kind, actor=OPS, reason=WHY) == 0
    assert [letter.job_id for letter in (await dead_letters.list(acting)).letters] == [other]
    assert [row[0] for row in audited(sql)] == ["dead_letter.discarded"] * 601
    with pytest.raises(errors.MissingField):
        await dead_letters.discard_many(acting, actor=OPS, reason=None)  # type: ignore[arg-type]


async def test_any_ended_job_is_rerun_with_another_payload(
    dead_letters: DeadLetters,
    send: Any,
    bury: Bury,
    acting: uuid.UUID,
    database: Database,
    sql: psycopg.Connection,
) -> None:
    old = (await send.enqueue("a")).job_id
    with pytest.raises(errors.Conflict):
        await dead_letters.rerun(acting, old, OPS, WHY, payload={"to": "b"})
    await end_one(database, Completed(1))
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.ContractError) as refused:
        await dead_letters.rerun(acting, old, OPS, WHY, payload={"to": 7})
    assert refused.value.field == "payload.to"
    assert dump_resolution_rows(sql) == before
    again = await dead_letters.rerun(acting, old, OPS, WHY, payload={"to": "b"})
    row = sql.execute("select payload, replay_of from duly.job_records where job_id = %s", [again.job_id])
    assert row.fetchone() == ({"to": "b", "size": 1}, old)
    with pytest.raises(errors.Conflict, match="already reruns it with another payload"):
        await dead_letters.rerun(acting, old, OPS, WHY, payload={"to": "c"})
    await end_one(database, Completed(1))
    dead = await bury("z")
    await dead_letters.rerun(acting, dead, OPS, WHY, payload={"to": "c"})
    assert (await dead_letters.get(acting, dead)).resolution == "fixed"
