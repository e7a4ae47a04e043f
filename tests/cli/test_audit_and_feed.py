"""`duly feed` and `duly audit`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly
from duly.model.audit_chain import verify
from duly.upkeep.sealer import Sealer
from tests.cli.conftest import ROOT, Ended, Run
from tests.store.settling import settle


def lines(done: Ended) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


async def greet(duly: Run, org: uuid.UUID, *names: str) -> list[str]:
    said = [("enqueue", "shop.greet", "--payload", json.dumps({"name": name})) for name in names]
    return [(await duly(*words, "--org", org, "--json")).document["job_id"] for words in said]


async def test_the_feed_is_a_line_of_json_an_event_and_goes_on_after_any_of_them(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    made = await greet(duly, org, "Ada", "Bob", "Cleo")
    settle(sql)
    found = lines(await duly("feed", "--org", org))
    assert [event["job_id"] for event in found] == made
    assert {event["event_type"] for event in found} == {"job.queued"}
    assert {event["org_id"] for event in found} == {str(org)}
    rest = lines(await duly("feed", "--org", org, "--after", found[0]["cursor"], "--json"))
    assert rest == found[1:]
    assert lines(await duly("feed", "--org", org, "--new")) == []


async def test_a_feed_that_cannot_be_read_says_why(duly: Run, org: uuid.UUID) -> None:
    for words, code in {
        ("--org", uuid.uuid4()): 3,
        ("--org", org, "--after", "?"): 4,
        ("--org", "acme"): 2,
    }.items():
        done = await duly("feed", *words)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done


async def test_a_followed_feed_ends_when_it_is_interrupted(
    duly: Run, org: uuid.UUID, environment: dict[str, str]
) -> None:
    [first] = await greet(duly, org, "Ada")
    following = subprocess.Popen(
        [sys.executable, "-m", "duly.cli", "feed", "--org", str(org), "--follow"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert following.stdout
        assert json.loads(following.stdout.readline())["job_id"] == first
        [second] = await greet(duly, org, "Bob")
        assert json.loads(following.stdout.readline())["job_id"] == second
        following.send_signal(signal.SIGINT)
        _, complaint = following.communicate(timeout=60)
        assert (following.returncode, complaint) == (0, "")
    finally:
        following.kill()
        following.communicate(timeout=60)


@pytest.fixture
async def sealed(duly: Run, org: uuid.UUID, app: Duly, sql: psycopg.Connection) -> uuid.UUID:
    """Three changes by anna, sealed."""
    for number in ("3", "4", "5"):
        words = ("--max-running", number, "--reason", "[b]load[/]", "--actor", "anna")
        assert (await duly("limit", "set", "--org", org, *words)).code == 0
    settle(sql)
    await Sealer(app).once()
    return org


async def test_the_trail_is_listed_for_people_and_for_programs(duly: Run, sealed: uuid.UUID) -> None:
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
    for words in (("--action", "nothing"), ("--target", "nothing"), ("--since", "2100-01-01T00:00:00Z")):
        assert (await duly("audit", "list", "--org", sealed, *words, "--json")).document["entries"] == []
    assert (await duly("audit", "list", "--org", sealed, "--since", "noon")).code == 2


async def test_a_trail_is_verified_and_its_head_can_be_expected(
    duly: Run, sealed: uuid.UUID, sql: psycopg.Connection
) -> None:
    done = await duly("audit", "verify", "--org", sealed)
    assert done.code == 0
    assert done.out.startswith(f"{sealed} ok: 3 entries in 1 seals, 0 not sealed yet; head ")
    head = done.out.split()[-1]
    [report] = (await duly("audit", "verify", "--org", sealed, "--expect", head, "--json")).document[
        "reports"
    ]
    assert (report["ok"], report["head"], report["problems"]) == (True, head, [])
    lost = await duly("audit", "verify", "--org", sealed, "--expect", "ab" * 32)
    assert (lost.code, "no seal has the expected hash" in lost.out) == (1, True)


async def test_what_was_tampered_with_ends_with_one_and_is_named(
    duly: Run, sealed: uuid.UUID, sql: psycopg.Connection
) -> None:
    row = sql.execute(
        "update duly.audit_entries set actor_id = 'eve' where entry_id = "
        "(select entry_id from duly.audit_entries where org_id = %s limit 1) returning entry_id",
        [sealed],
    ).fetchone()
    assert row
    for words in (("--org", sealed), ("--all",)):
        done = await duly("audit", "verify", *words)
        assert (done.code, done.err) == (1, "")
        assert f"{sealed} BROKEN at seal 1: " in done.out
        assert f"  seal 1, entry {row[0]}: entry changed, it is not as it was sealed" in done.out
        reports = (await duly("audit", "verify", *words, "--json")).document["reports"]
        [broken] = [report for report in reports if not report["ok"]]
        assert (broken["broken_at"], broken["problems"][0]["entry_id"]) == (1, str(row[0]))


async def test_which_trail_to_verify_must_be_said(duly: Run, sealed: uuid.UUID) -> None:
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
