"""Dead letters are listed per org, with filters and in pages."""

from __future__ import annotations

import json
import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.core.error_report import describe_error
from duly.core.outcome import ErrorInfo, Failed
from duly.db.database import Database
from duly.features.dead_letters.service import DeadLetters
from tests.features.dead_letters.dead_jobs import ACTIONS, BOOM, OPS, WHY, Bury, dump_resolution_rows, end_one


async def test_a_letter_has_the_error_and_the_input_of_its_job(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID
) -> None:
    try:
        raise ValueError("login failed: password=hunter2")
    except ValueError as error:
        info = describe_error(error, job_type="mail.send")
    job_id = await bury("bob", error=info, subject_id="mail/7")
    [letter] = (await dead_letters.list(acting)).letters
    assert (letter.job_id, letter.job_type, letter.queue, letter.attempts) == (
        job_id,
        "mail.send",
        "q:default",
        1,
    )
    assert (letter.error_code, letter.error_class) == ("value_error", "ValueError")
    assert letter.error_message == "login failed: password=[redacted]"
    assert letter.resolution is None
    detail = await dead_letters.get(acting, str(job_id))
    assert (detail.payload, detail.subject_id, detail.correlation_id) == (
        {"to": "bob", "size": 1},
        "mail/7",
        "req-1",
    )
    assert detail.error_context["exceptions"][0]["frames"]
    assert "hunter2" not in detail.model_dump_json()


async def test_pages_are_newest_first_without_repeats_or_gaps(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    buried = [await bury(str(n)) for n in range(7)]
    # Some of one moment: then the id decides.
    sql.execute(
        "update duly.dead_letters set dead_at = '2026-01-01T00:00:00Z' where job_id = any (%s)", [buried[:3]]
    )
    expected = [*reversed(buried[3:]), *sorted(buried[:3], reverse=True)]
    assert [x.job_id for x in (await dead_letters.list(acting)).letters] == expected
    listed: list[uuid.UUID] = []
    after = None
    while True:
        page = await dead_letters.list(acting, limit=2, after=after)
        listed += [letter.job_id for letter in page.letters]
        if page.after is None:
            break
        after = page.after
    assert listed == expected


async def test_letters_are_filtered_by_fingerprint_job_type_and_resolution(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID
) -> None:
    first = await bury("a")
    other = await bury("b", error=ErrorInfo("timeout", "too slow", "TimeoutError"))
    kind = (await dead_letters.get(acting, other)).fingerprint
    assert [x.job_id for x in (await dead_letters.list(acting, fingerprint=kind)).letters] == [other]
    assert (await dead_letters.list(acting, job_type="mail.read")).letters == ()
    assert len((await dead_letters.list(acting, job_type="mail.send")).letters) == 2
    await dead_letters.discard(acting, first, OPS, WHY)
    assert [x.job_id for x in (await dead_letters.list(acting)).letters] == [other]
    [gone] = (await dead_letters.list(acting, resolved=True)).letters
    assert (gone.job_id, gone.resolution, gone.resolved_by, gone.resolve_reason) == (
        first,
        "discarded",
        "user:ops-1",
        WHY,
    )
    assert gone.resolved_at is not None


async def test_equal_failures_are_one_group(dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID) -> None:
    letters = [await bury(str(n), error=ErrorInfo("boom", f"row {n}", "ValueError")) for n in range(3)]
    await bury("x", error=ErrorInfo("timeout", "too slow", "TimeoutError"))
    timeout, boom = await dead_letters.groups(acting)
    assert (timeout.error_code, timeout.letters) == ("timeout", 1)
    assert (boom.job_type, boom.error_code, boom.letters) == ("mail.send", "boom", 3)
    assert boom.error_message == "row 2", "the latest"
    times = [(await dead_letters.get(acting, job)).dead_at for job in letters]
    assert (boom.first_dead_at, boom.last_dead_at) == (times[0], times[2])
    for job in letters:
        await dead_letters.discard(acting, job, OPS, WHY)
    assert [group.error_code for group in await dead_letters.groups(acting)] == ["timeout"]


async def test_an_org_without_letters_has_empty_lists(dead_letters: DeadLetters, acting: uuid.UUID) -> None:
    assert (await dead_letters.list(acting)).letters == ()
    assert await dead_letters.groups(acting) == []
    report = await dead_letters.replay_many(acting, per_second=1, actor=OPS, reason=WHY)
    assert (report.replayed, report.left, report.last_run_at) == ((), {}, None)


@pytest.mark.parametrize(
    ("field", "arguments"),
    [
        ("limit", {"limit": 0}),
        ("limit", {"limit": 501}),
        ("limit", {"limit": True}),
        ("after", {"after": "page two"}),
        ("after", {"after": "MjAyNg=="}),
        ("after", {"after": "ä"}),
        ("fingerprint", {"fingerprint": ""}),
        ("job_type", {"job_type": "\0"}),
    ],
)
async def test_invalid_arguments_of_a_list_are_named(
    dead_letters: DeadLetters, acting: uuid.UUID, field: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(errors.ContractError) as refused:
        await dead_letters.list(acting, **arguments)
    assert refused.value.field == field
    assert refused.value.fix


async def test_a_letter_of_another_org_is_unknown_to_the_byte(
    app: Duly, dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    stranger = uuid.uuid4()
    await app.create_org(stranger, "Other")
    before = dump_resolution_rows(sql)
    for action in [lambda b, o, j: b.get(o, j), lambda b, o, j: b.rerun(o, j, OPS, WHY), *ACTIONS.values()]:
        messages = []
        for org, job in [(stranger, old), (acting, uuid.uuid4()), (uuid.uuid4(), old)]:
            with pytest.raises(errors.UnknownJob) as refused:
                await action(dead_letters, org, job)
            messages.append(str(refused.value).replace(str(job), "<id>"))
        assert len(set(messages)) == 1
    assert (await dead_letters.list(stranger)).letters == ()
    assert await dead_letters.groups(stranger) == []
    report = await dead_letters.replay_many(stranger, per_second=1, actor=OPS, reason=WHY)
    assert (report.replayed, report.left) == ((), {})
    assert dump_resolution_rows(sql) == before


async def test_a_job_that_did_not_die_has_no_letter(
    dead_letters: DeadLetters, send: Any, acting: uuid.UUID, database: Database
) -> None:
    job = await send.enqueue("a")
    await end_one(database, Failed(BOOM))
    for action in ACTIONS.values():
        with pytest.raises(errors.UnknownJob):
            await action(dead_letters, acting, job.job_id)


async def test_an_unknown_org_raises(dead_letters: DeadLetters, org: uuid.UUID) -> None:
    assert ((await dead_letters.list(org)).letters, await dead_letters.groups(org)) == ((), [])
    for read in (dead_letters.list, dead_letters.groups):
        with pytest.raises(errors.UnknownOrg):
            await read(uuid.uuid4())


async def test_a_suspended_org_gets_no_new_jobs(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    sql.execute("update duly.organizations set status = 'suspended' where org_id = %s", [acting])
    before = dump_resolution_rows(sql)
    with pytest.raises(errors.UnknownOrg):
        await dead_letters.replay(acting, old, OPS, WHY)
    assert dump_resolution_rows(sql) == before


async def test_a_letter_whose_job_no_longer_exists_can_only_be_discarded(
    dead_letters: DeadLetters, bury: Bury, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    old = await bury()
    sql.execute("delete from duly.job_records")
    assert (await dead_letters.get(acting, old)).payload is None
    with pytest.raises(errors.Conflict, match="no longer exists"):
        await dead_letters.replay(acting, old, OPS, WHY)
    report = await dead_letters.replay_many(acting, per_second=1, actor=OPS, reason=WHY)
    assert report.left == {old: f"job {old} no longer exists"}
    await dead_letters.discard(acting, old, OPS, WHY)
    assert (await dead_letters.list(acting)).letters == ()


async def test_only_the_engine_may_replay(database: Database, acting: uuid.UUID) -> None:
    arguments = [acting, json.dumps([{"job_id": str(uuid.uuid4())}])]
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with database.tenant(acting) as conn:
            await conn.execute("select duly.replay(%s, %s, 'user', 'u', 'r', null, 'x')", arguments)
