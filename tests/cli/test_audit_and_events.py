"""`duly events` and `duly audit`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Actor, Context, Duly, context
from duly.features.audit.chain import verify
from duly.features.audit.sealer import Sealer
from duly.jobs import store as job_store
from tests.cli.conftest import ROOT, CommandResult, Run
from tests.db.open_transactions import wait_for_transactions
from tests.worker.working import TWO_ATTEMPTS, WAIT_TIMEOUT, working


def lines(result: CommandResult) -> list[dict[str, Any]]:
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


async def enqueue_greetings(duly: Run, org: uuid.UUID, *names: str) -> list[str]:
    commands = [("enqueue", "shop.greet", "--payload", json.dumps({"name": name})) for name in names]
    return [(await duly(*args, "--org", org, "--json")).document["job_id"] for args in commands]


async def test_events_are_json_lines_and_continue_after_any_cursor(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    job_ids = await enqueue_greetings(duly, org, "Ada", "Bob", "Cleo")
    wait_for_transactions(sql)
    events = lines(await duly("events", "list", "--org", org))
    assert [event["job_id"] for event in events] == job_ids
    assert {event["event_type"] for event in events} == {"job.queued"}
    assert {event["org_id"] for event in events} == {str(org)}
    rest = lines(await duly("events", "list", "--org", org, "--after", events[0]["cursor"], "--json"))
    assert rest == events[1:]
    assert lines(await duly("events", "list", "--org", org, "--new")) == []


async def test_an_unreadable_feed_is_an_error_in_one_line(duly: Run, org: uuid.UUID) -> None:
    for args, code in {
        ("--org", uuid.uuid4()): 3,
        ("--org", org, "--after", "?"): 4,
        ("--org", "acme"): 2,
    }.items():
        result = await duly("events", "list", *args)
        assert (result.code, result.out, result.err.count("\n")) == (code, "", 1), result


async def test_ctrl_c_ends_a_followed_feed(duly: Run, org: uuid.UUID, environment: dict[str, str]) -> None:
    [first] = await enqueue_greetings(duly, org, "Ada")
    following = subprocess.Popen(
        [sys.executable, "-m", "duly.cli", "events", "list", "--org", str(org), "--follow"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run in the background may inherit an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert following.stdout
        assert json.loads(following.stdout.readline())["job_id"] == first
        [second] = await enqueue_greetings(duly, org, "Bob")
        assert json.loads(following.stdout.readline())["job_id"] == second
        following.send_signal(signal.SIGINT)
        _, error = following.communicate(timeout=60)
        assert (following.returncode, error) == (0, "")
    finally:
        following.kill()
        following.communicate(timeout=60)


@pytest.fixture
async def sealed(duly: Run, org: uuid.UUID, app: Duly, sql: psycopg.Connection) -> uuid.UUID:
    """An org with three sealed changes by anna."""
    for number in ("3", "4", "5"):
        args = ("--max-running", number, "--reason", "[b]load[/]", "--actor", "anna")
        assert (await duly("limits", "set", "--org", org, *args)).code == 0
    wait_for_transactions(sql)
    await Sealer(app).once()
    return org


async def test_the_audit_trail_is_listed_as_a_table_and_as_json(duly: Run, sealed: uuid.UUID) -> None:
    listed = await duly("audit", "list", "--org", sealed)
    assert (listed.code, listed.out.count("operator:anna"), listed.out.count("[b]load[/]")) == (0, 3, 3)
    page = (await duly("audit", "list", "--org", sealed, "--limit", "2", "--json")).document
    assert [entry["actor_id"] for entry in page["entries"]] == ["anna", "anna"]
    rest = await duly("audit", "list", "--org", sealed, "--after", page["after"], "--json")
    assert (len(rest.document["entries"]), rest.document["after"]) == (1, None)
    action = page["entries"][0]["action"]
    assert (
        len((await duly("audit", "list", "--org", sealed, "--action", action, "--json")).document["entries"])
        == 3
    )
    for args in (("--action", "nothing"), ("--target", "nothing"), ("--since", "2100-01-01T00:00:00Z")):
        assert (await duly("audit", "list", "--org", sealed, *args, "--json")).document["entries"] == []
    assert (await duly("audit", "list", "--org", sealed, "--since", "noon")).code == 2


async def test_an_audit_trail_is_verified_against_an_expected_head(
    duly: Run, sealed: uuid.UUID, sql: psycopg.Connection
) -> None:
    result = await duly("audit", "verify", "--org", sealed)
    assert result.code == 0
    assert result.out.startswith(f"{sealed} ok: 3 entries in 1 seals, 0 not sealed yet; head ")
    head = result.out.split()[-1]
    [report] = (await duly("audit", "verify", "--org", sealed, "--expect", head, "--json")).document[
        "reports"
    ]
    assert (report["ok"], report["head"], report["problems"]) == (True, head, [])
    lost = await duly("audit", "verify", "--org", sealed, "--expect", "ab" * 32)
    assert (lost.code, "no seal has the expected hash" in lost.out) == (1, True)


async def test_a_tampered_entry_is_named_and_exits_with_one(
    duly: Run, sealed: uuid.UUID, sql: psycopg.Connection
) -> None:
    row = sql.execute(
        "update duly.audit_entries set actor_id = 'eve' where entry_id = "
        "(select entry_id from duly.audit_entries where org_id = %s limit 1) returning entry_id",
        [sealed],
    ).fetchone()
    assert row
    for args in (("--org", sealed), ("--all",)):
        result = await duly("audit", "verify", *args)
        assert (result.code, result.err) == (1, "")
        assert f"{sealed} BROKEN at seal 1: " in result.out
        assert f"  seal 1, entry {row[0]}: entry changed, it was changed after it was sealed" in result.out
        reports = (await duly("audit", "verify", *args, "--json")).document["reports"]
        [broken] = [report for report in reports if not report["ok"]]
        assert (broken["broken_at"], broken["problems"][0]["entry_id"]) == (1, str(row[0]))


SWAPPED = """
    update duly.audit_entries e set {0} = o.{0} from duly.audit_entries o
    where (e.target_id, o.target_id) in (('2', '3'), ('3', '2'))
"""
TAMPERINGS = {
    "a row is changed": ("entry changed", "update duly.audit_entries set reason = '' where target_id = '2'"),
    "a row is removed": ("entry missing", "delete from duly.audit_entries where target_id = '2'"),
    "two rows are swapped": ("entry moved", SWAPPED.format("commit_xid")),
    "two rows swap their details": ("entry changed", SWAPPED.format("detail")),
    "two seals are swapped": (
        "seal changed",
        "update duly.audit_seals set seal_seq = -seal_seq;"
        "update duly.audit_seals set seal_seq = 3 + seal_seq",
    ),
}
"""Statements of an attacker with write access to the database, and the problem that `verify` reports."""


async def test_a_changed_a_removed_and_a_reordered_row_are_found_in_the_database_and_in_a_file(
    duly: Run, app: Duly, org: uuid.UUID, sql: psycopg.Connection, tmp_path: Path
) -> None:
    for number in (1, 2, 3, 4):
        async with (await app.resources()).database.engine() as conn:
            entry = {"action": "item.sold", "target_type": "item", "target_id": str(number)}
            await job_store.record_audit_entry(
                conn, org_id=org, actor=Actor.user("u1"), **entry, detail={"n": number}
            )
        if number > 2:
            wait_for_transactions(sql)
            await Sealer(app).once()
    sql.execute(
        "create table entries as table duly.audit_entries; create table seals as table duly.audit_seals"
    )
    for kind, statements in TAMPERINGS.values():
        sql.execute(statements)
        file = tmp_path / "export.jsonl"
        file.write_text((await duly("audit", "export", "--org", org)).out)
        for args in (("--org", org), ("--file", file)):
            result = await duly("audit", "verify", *args)
            assert (result.code, kind in result.out) == (1, True), (kind, args, result)
        sql.execute("truncate duly.audit_entries, duly.audit_seals")
        sql.execute("insert into duly.audit_entries table entries; insert into duly.audit_seals table seals")
    assert (await duly("audit", "verify", "--org", org)).code == 0


async def test_only_an_expected_head_reveals_a_truncated_export(
    duly: Run, sealed: uuid.UUID, tmp_path: Path
) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text((await duly("audit", "export", "--org", sealed)).out)
    result = await duly("audit", "verify", "--file", file, "--json")
    [report] = result.document["reports"]
    assert (result.code, report["sealed"], report["unsealed"]) == (0, 3, 0)
    assert (await duly("audit", "verify", "--file", file, "--expect", report["head"])).code == 0
    lines = file.read_text().splitlines()
    file.write_text("\n".join(lines[:2]))
    assert (await duly("audit", "verify", "--file", file)).code == 0
    assert (await duly("audit", "verify", "--file", file, "--expect", report["head"])).code == 1
    file.write_text(lines[-1])
    assert (await duly("audit", "verify", "--file", file)).code == 1
    later = ("--kept-since", "2100-01-01T00:00:00Z")
    assert (await duly("audit", "verify", "--file", file, *later)).code == 0
    for text, code in (("", 4), ("{}", 4), ("no json", 4)):
        file.write_text(text)
        assert (await duly("audit", "verify", "--file", file)).code == code, text
    assert (await duly("audit", "verify", "--file", tmp_path / "nothing")).code == 2


async def test_job_events_are_exported_under_the_names_of_the_audit(
    duly: Run, org: uuid.UUID, app: Duly, sql: psycopg.Connection
) -> None:
    @app.job("shop.try", retry=TWO_ATTEMPTS)
    async def attempt(ctx: Context) -> None:
        ctx.progress(50)
        raise ValueError("no")

    await app.create_project(org, project := uuid.uuid4(), "Berlin")
    trace = {"request_id": "req-7", "correlation_id": "cor-7"}
    with context(org_id=org, actor=Actor.user("u1"), project_id=project, **trace):
        handle = await attempt.enqueue()
        async with working(app):
            await handle.wait(WAIT_TIMEOUT)
    wait_for_transactions(sql)
    audit_events = lines(await duly("audit", "events", "--org", org))
    events_of_job = [event for event in audit_events if event["job_id"] == str(handle.job_id)]
    assert [(event["action"], event["attempt"]) for event in events_of_job] == [
        ("job.enqueued", 0), ("job.started", 1), ("job.retried", 1), ("job.started", 2),
        ("job.deadlettered", 2), ("job.failed", 2),
    ]  # fmt: skip
    expected = {"org_id": str(org), "project_id": str(project), "job_type": "shop.try", **trace}
    for event in events_of_job:
        assert {name: event[name] for name in expected} == expected
        assert all(event[name] for name in ("occurred_at", "actor_type", "actor_id"))
    assert (events_of_job[0]["actor_type"], events_of_job[0]["actor_id"]) == ("user", "u1")
    rest = lines(await duly("audit", "events", "--org", org, "--after", events_of_job[-1]["cursor"]))
    assert rest == audit_events[audit_events.index(events_of_job[-1]) + 1 :]


async def test_verify_requires_an_org_all_or_a_file(duly: Run, sealed: uuid.UUID) -> None:
    assert (await duly("audit", "verify")).code == 2
    assert (await duly("audit", "verify", "--all", "--expect", "ab" * 32)).code == 2
    assert (await duly("audit", "verify", "--org", sealed, "--expect", "short")).code == 4
    assert (await duly("audit", "verify", "--org", uuid.uuid4())).code == 3


async def test_an_export_is_verified_without_the_database(duly: Run, sealed: uuid.UUID) -> None:
    rows = lines(await duly("audit", "export", "--org", sealed))
    assert [row["kind"] for row in rows] == ["entry", "entry", "entry", "seal"]
    assert verify(rows[:3], rows[3:]) == []
    rows[1]["reason"] = "another"
    assert [problem.kind for problem in verify(rows[:3], rows[3:])] == ["entry_changed"]
