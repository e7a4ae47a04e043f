"""Kinds of failures: in one org and in all, what became of them, and the end of many at once."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, context, errors
from duly.core.outcome import Completed, ErrorInfo, Retried
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from tests.features.dead_letters.letters import OPS, WHY, Bury, audited, clone_letter, end_one, picture

OTHER = ErrorInfo("other", "something else broke", "KeyError", {})


async def test_a_kind_names_its_latest_letter_and_how_the_new_jobs_fare(
    box: DeadLetters, bury: Bury, acting: uuid.UUID, database: Database
) -> None:
    first, second, third = [await bury(name) for name in "abc"]
    other = await bury("d", error=OTHER)
    groups = {group.job_id: group.letters for group in await box.groups(acting)}
    assert groups == {third: 3, other: 1}
    kind = (await box.get(acting, first)).fingerprint
    canary = await box.replay(acting, third, OPS, WHY)
    told = await box.kind(acting, kind)
    assert (told.letters, told.job_id, told.resolved, told.fates) == (
        2, second, {"replayed": 1}, {"queued": 1},
    )  # fmt: skip
    assert [(one.letter_job_id, one.job_id, one.status) for one in told.successors] == [
        (third, canary.job_id, "queued")
    ]
    assert await end_one(database, Completed(1)) == canary.job_id
    fixed = await box.fix(acting, second, {"to": "x"}, OPS, WHY)
    assert await end_one(database, Retried(OTHER)) == fixed.job_id
    await box.discard(acting, first, OPS, WHY)
    told = await box.kind(acting, kind)
    assert (told.letters, told.first_dead_at) == (0, None)
    assert told.resolved == {"replayed": 1, "fixed": 1, "discarded": 1}
    assert told.fates == {"completed": 1, "dead": 1}
    assert told.error_message == "it broke"
    with pytest.raises(errors.NotFound):
        await box.kind(acting, "nothing")


async def test_kinds_of_all_orgs_are_told_apart_by_org(
    app: Duly, box: DeadLetters, bury: Bury, send: Any, acting: uuid.UUID, database: Database
) -> None:
    mine = await bury()
    await bury("b", error=OTHER)
    theirs = uuid.uuid4()
    await app.create_org(theirs, "Other")
    with context(org_id=theirs):
        job = (await send.enqueue("c")).job_id
    await end_one(database, Retried(ErrorInfo("boom", "it broke", "ValueError", {"exceptions": []})))
    found = await box.groups_everywhere()
    assert {(group.org_id, group.job_id) for group in found} >= {(acting, mine), (theirs, job)}
    assert len(found) == 3
    same = {group.fingerprint for group in found if group.error_code == "boom"}
    assert len(same) == 1
    with pytest.raises(errors.NotFound):
        await box.kind(uuid.uuid4(), same.pop())


async def test_many_letters_are_discarded_the_oldest_first_and_each_is_audited(
    box: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    other = await bury("z", error=OTHER)
    job = await bury()
    clone_letter(sql, job, 600)
    kind = (await box.get(acting, job)).fingerprint
    assert await box.discard_many(acting, fingerprint=kind, limit=20, actor=OPS, reason=WHY) == 20
    assert await box.discard_many(acting, fingerprint=kind, actor=OPS, reason=WHY) == 581
    assert await box.discard_many(acting, fingerprint=kind, actor=OPS, reason=WHY) == 0
    assert [letter.job_id for letter in (await box.list(acting)).letters] == [other]
    assert [row[0] for row in audited(sql)] == ["dead_letter.discarded"] * 601
    with pytest.raises(errors.MissingField):
        await box.discard_many(acting, actor=OPS, reason=None)  # type: ignore[arg-type]


async def test_any_ended_job_is_done_again_with_another_payload(
    box: DeadLetters, send: Any, bury: Bury, acting: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    old = (await send.enqueue("a")).job_id
    with pytest.raises(errors.Conflict):
        await box.rerun(acting, old, OPS, WHY, payload={"to": "b"})
    await end_one(database, Completed(1))
    before = picture(sql)
    with pytest.raises(errors.ContractError) as refused:
        await box.rerun(acting, old, OPS, WHY, payload={"to": 7})
    assert refused.value.field == "payload.to"
    assert picture(sql) == before
    again = await box.rerun(acting, old, OPS, WHY, payload={"to": "b"})
    row = sql.execute("select payload, replay_of from duly.job_records where job_id = %s", [again.job_id])
    assert row.fetchone() == ({"to": "b", "size": 1}, old)
    with pytest.raises(errors.Conflict, match="already, with another payload"):
        await box.rerun(acting, old, OPS, WHY, payload={"to": "c"})
    await end_one(database, Completed(1))
    dead = await bury("z")
    await box.rerun(acting, dead, OPS, WHY, payload={"to": "c"})
    assert (await box.get(acting, dead)).resolution == "fixed"
