"""Every command, with text and with JSON."""

from __future__ import annotations

import getpass
import io
import sys
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly.core.outcome import ErrorInfo, Retried
from duly.db.database import Database
from duly.worker.workers_store import WorkerIdentity, register
from tests.architecture.pages import commands
from tests.cli.conftest import Run
from tests.features.dead_letters.dead_jobs import end_one

WHY = ("--reason", "because")
NASTY = ErrorInfo("shop.broken", "it [bold]broke[/] \x1b[31mred", "ValueError", {"exceptions": []})


@pytest.fixture
async def ids(
    duly: Run, org: uuid.UUID, database: Database, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Four letters and a job that waits."""
    monkeypatch.setenv("DULY_ORG", str(org))
    found = {}
    for name in ("first", "second", "third", "fourth"):
        await duly("enqueue", "shop.greet", "--payload", '{"name": "Ada"}', "--key", name)
        found[name] = await end_one(database, Retried(NASTY))
    made = await duly("enqueue", "shop.sell", "--json")
    key = (await duly("api-keys", "create", "ci", "--scope", "jobs:read", *WHY, "--json")).document["key"]
    more = {"waiting": made.document["job_id"], "key": key["key_id"], "new": uuid.uuid4(), "org": org}
    return {**found, **more, "worker": await _worker(database), **await _telling(duly)}


async def _worker(database: Database) -> uuid.UUID:
    """One who has introduced itself, and nothing more."""
    who = WorkerIdentity(uuid.uuid4(), "new", "h", 1, "0", ("q:exports",), 1, timedelta(milliseconds=1))
    async with database.engine() as conn:
        await register(conn, who)
    return who.worker_id


async def _telling(duly: Run) -> dict[str, Any]:
    """An endpoint with a message, a notification and a subscription."""
    hook = await duly("webhooks", "create", "https://example.com/hook", "--event", "*", *WHY, "--json")
    endpoint = hook.document["endpoint"]["endpoint_id"]
    message = await duly("webhooks", "test", endpoint, *WHY, "--json")
    told = await duly(
        "notifications", "send", "job.completed", "--to", "in_app:u1", "--bucket", "first", "--json"
    )
    added = await duly("subscriptions", "create", "in_app:u1", "--json")
    return {
        "hook": endpoint,
        "message": message.document["message_id"],
        "told": told.document["notifications"][0]["notification_id"],
        "subscription": added.document["subscription_id"],
    }


LINES = """
migrate
doctor
reconcile --dry-run
orgs create Acme --id {new} {why}
enqueue shop.greet --payload {payload} --key k --priority 5 --at 2100-01-01T00:00:00Z --subject s-1
jobs list --status queued --limit 1
jobs show {waiting}
jobs bulk cancel --match type:shop.none {why}
jobs cancel {waiting} {why}
jobs watch {waiting}
jobs rerun {waiting} {why}
queues list
queues stats
workers list
workers drain {worker} {why}
queues create q:slow 2 {why}
queues pause q:slow {why}
queues resume q:slow {why}
queues weight q:slow 3 {why}
queues set q:slow --alert-depth 50 --alert-wait 60s {why}
alerts list --all --kind queue_depth --limit 1
limits set --org {org} --type shop.greet --max-running 3 --starts-per-second 2.5 {why}
limits pause --type shop.greet {why}
limits resume --type shop.greet {why}
limits list
dead-letters list --type shop.greet --limit 2
dead-letters groups
dead-letters show {first}
dead-letters replay {first} {why}
dead-letters fix {second} --payload {payload} {why}
dead-letters discard {third} {why}
dead-letters replay-many --per-second 10 {why}
dead-letters discard-many {why}
schedules create nightly --cron 0,3,*,*,* --type shop.greet --payload {payload} {why}
schedules list
schedules pause nightly {why}
schedules resume nightly {why}
schedules run nightly {why}
schedules upcoming nightly --count 3
schedules ticks nightly --count 3
schedules delete nightly {why}
members set eve admin {why}
members list
members remove eve {why}
api-keys create ci --scope jobs:read --scope jobs:write {why}
api-keys rotate {key} --overlap-hours 2 {why}
api-keys revoke {key} {why}
api-keys list --limit 1
orgs suspend {new} {why}
orgs resume {new} {why}
orgs show {new}
orgs list --limit 1
webhooks create https://example.com/more --event job.failed {why}
webhooks list
webhooks show {hook}
webhooks update {hook} --description chat {why}
webhooks rotate {hook} {why}
webhooks test {hook} {why}
webhooks deliveries {hook} --limit 1
webhooks resend {hook} --failed-since 2026-01-01T00:00:00Z {why}
webhooks disable {hook} {why}
webhooks enable {hook} {why}
webhooks delete {hook} {why}
templates set job.failed --subject Oops --body Sorry {why}
templates list
notifications preview job.failed
templates delete job.failed {why}
notifications send job.completed --to in_app:u1
notifications list --limit 1
notifications show {told}
notifications resend {told} {why}
notifications suppress email:eve@example.com {why}
notifications suppressed
notifications unsuppress email:eve@example.com {why}
subscriptions create in_app:u1 --type shop.greet
subscriptions list
subscriptions delete {subscription}
audit list --limit 2
audit verify
"""
SERVERS = {"worker", "serve", "up"}
"""They run until they are told to stop."""
STREAMS = {"events list", "audit export", "audit events", "jobs logs"}
"""One line of JSON for each of what they tell, for people too."""
ELSEWHERE = "docs "
"""They need tables of their own, and are tried beside them."""


def _words(line: str, ids: dict[str, Any]) -> list[str]:
    given = {**ids, "payload": '{"name":"Eve"}', "why": "--reason because"}
    words = [word.format(**given) for word in line.split()]
    return [part for word in words for part in _split(word)]


def _split(word: str) -> list[str]:
    return [word.replace(",", " ")] if word.startswith("0,") else word.split()


async def test_every_command_prints_one_json_document(
    duly: Run, ids: dict[str, Any], sql: psycopg.Connection[Any]
) -> None:
    said: dict[str, Any] = {}
    for line in LINES.strip().splitlines():
        done = await duly(*_words(line, ids), "--json")
        assert done.err == "", line
        # Jobs are queued, and there is no worker.
        assert done.code == (1 if line.startswith(("jobs watch", "doctor")) else 0), line
        said[" ".join(line.split()[:2])] = done.document
    here = [path for path in commands() if not path.startswith(ELSEWHERE)]
    offered = {" ".join(path.split()[:2]) for path in here} - SERVERS - STREAMS
    assert {said_of.removesuffix(" shop.greet").removesuffix(" --dry-run") for said_of in said} == offered
    assert said["migrate"] == {"applied": []}
    assert said["jobs show"]["explanation"]
    assert [job["job_id"] for job in said["jobs list"]["jobs"]] == [said["enqueue shop.greet"]["job_id"]]
    assert said["jobs list"]["after"]
    assert said["jobs cancel"]["status"] == "canceled"
    assert said["queues weight"]["weight"] == 3
    assert said["queues pause"]["paused_by"] == f"operator:{getpass.getuser()}"
    assert (said["limits set"]["max_running"], said["limits set"]["starts_per_second"]) == (3, 2.5)
    assert said["limits list"]["limits"][0]["job_type"] == "shop.greet"
    assert len(said["dead-letters list"]["letters"]) == 2
    assert said["dead-letters groups"]["groups"][0]["letters"] == 4
    assert said["dead-letters show"]["payload"] == {"name": "Ada"}
    assert said["dead-letters show"]["kept"] is True, "the JSON name of job_retained"
    assert len(said["dead-letters replay-many"]["replayed"]) == 1
    assert said["dead-letters discard-many"] == {"discarded": 0}
    assert said["schedules create"]["cron"] == "0 3 * * *"
    assert [at[10:] for at in said["schedules upcoming"]["upcoming"]] == ["T03:00:00Z"] * 3
    assert said["schedules ticks"] == {"name": "nightly", "ticks": []}
    assert said["members remove"]["role"] == "admin"
    assert said["api-keys create"]["text"].split("_")[2] == said["api-keys create"]["key"]["key_id"]
    assert said["api-keys revoke"]["alive"] is False
    assert (said["orgs suspend"]["status"], said["orgs show"]["status"]) == ("suspended", "active")
    assert said["orgs list"]["after"]
    audited = sql.execute("select distinct actor_type, reason from duly.audit_entries").fetchall()
    assert audited == [("operator", "because")]
    assert sql.execute("select count(*) from duly.audit_entries where request_id is null").fetchone() == (0,)


async def test_every_command_prints_text_without_control_characters(duly: Run, ids: dict[str, Any]) -> None:
    out = ""
    for line in LINES.strip().splitlines():
        done = await duly(*_words(line, ids))
        assert (done.code, done.err) == (1 if line.startswith(("jobs watch", "doctor")) else 0, ""), line
        assert done.out, line
        out += done.out
    assert "it [bold]broke[/]" in out
    assert "\x1b" not in out
    for shown in ("up to date", "canceled", "q:slow", "next page: --after ", "shop.broken", "job.queued"):
        assert shown in out


async def test_replay_many_prints_the_new_jobs_and_when_the_last_one_runs(
    duly: Run, ids: dict[str, Any]
) -> None:
    done = await duly("dead-letters", "replay-many", "--per-second", "0.1", *WHY)
    new = (await duly("jobs", "list", "--status", "queued", "--type", "shop.greet", "--json")).document[
        "jobs"
    ]
    assert len(new) == 4
    last = max(job["run_at"] for job in new)
    first_line, *lines = done.out.splitlines()
    assert first_line == "replayed 4, left 0"
    assert {line.strip() for line in lines} >= {"new job", *(job["job_id"] for job in new)}
    assert f"last run  {last[:10]} {last[11:19]}Z" in done.out
    assert "because" not in done.out
    again = await duly("dead-letters", "replay-many", "--per-second", "1", *WHY)
    assert again.out == "replayed 0, left 0\n"


async def test_the_ticks_of_a_schedule_are_listed_with_their_disposition(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    greet = ("--type", "shop.greet", "--payload", '{"name":"Eve"}')
    await duly("schedules", "create", "hourly", "--org", org, "--cron", "@hourly", *greet, *WHY)
    sql.execute("update duly.schedules set counted_until = now() - interval '90 min'")
    await duly("schedules", "pause", "hourly", "--org", org, *WHY)
    await duly("schedules", "resume", "hourly", "--org", org, *WHY)
    found = (await duly("schedules", "ticks", "hourly", "--org", org, "--json")).document["ticks"]
    assert {tick["disposition"] for tick in found} == {"missed"}
    shown = await duly("schedules", "ticks", "hourly", "--org", org, "--count", "1")
    assert f"{found[0]['tick_at'][11:19]}Z  missed" in shown.out
    assert len(shown.out.splitlines()) == 2


async def test_a_payload_is_text_a_file_or_stdin(
    duly: Run, org: uuid.UUID, tmp_path: Path, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"name": "file"}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "input"}')))
    for given in ('{"name": "text"}', f"@{file}", "-"):
        assert (await duly("enqueue", "shop.greet", "--org", org, "--payload", given)).code == 0
    names = sql.execute("select payload ->> 'name' from duly.job_records order by job_id").fetchall()
    assert names == [("text",), ("file",), ("input",)]


async def test_enqueue_sets_every_option_of_the_job(duly: Run, org: uuid.UUID) -> None:
    line = ["enqueue", "shop.greet", "--org", org, "--payload", '{"name": "Ada"}', "--key", "k"]
    more = ["--priority", "7", "--subject", "s-1", "--at", "2100-01-01T01:00:00+01:00", "--actor", "ops"]
    first = (await duly(*line, *more, "--json")).document
    assert (await duly(*line, *more, "--json")).document == {**first, "created": False}
    job = (await duly("jobs", "show", first["job_id"], "--org", org, "--json")).document["job"]
    assert (job["priority"], job["subject_id"], job["run_at"]) == (7, "s-1", "2100-01-01T00:00:00Z")
    assert (job["actor_type"], job["actor_id"], job["idempotency_key"]) == ("operator", "ops", "k")


async def test_commands_without_job_types_need_no_application(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DULY_APP")
    made = (await duly("orgs", "create", "Acme", "--json")).document
    assert (await duly("jobs", "list", "--org", made["org_id"], "--json")).document == {
        "jobs": [],
        "after": None,
    }
    refused = await duly("enqueue", "shop.greet", "--org", made["org_id"])
    assert (refused.code, "--app" in refused.err) == (2, True)


async def test_a_limit_applies_to_every_org_only_without_an_org(
    duly: Run, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ORG", str(uuid.uuid4()))
    of_one = (await duly("limits", "set", "--org", org, "--max-running", "2", *WHY, "--json")).document
    assert (of_one["org_id"], of_one["max_running"]) == (str(org), 2)
    of_all = await duly("limits", "set", "--type", "shop.greet", "--max-running", "4", *WHY, "--json")
    assert (of_all.document["org_id"], of_all.document["max_running"]) == (None, 4)
    lifted = (await duly("limits", "set", "--org", org, "--max-running", "none", *WHY, "--json")).document
    assert lifted["max_running"] is None
    assert len((await duly("limits", "list", "--json")).document["limits"]) == 2


async def test_watch_prints_the_error_of_a_job_without_markup(duly: Run, ids: dict[str, Any]) -> None:
    watched = await duly("jobs", "watch", ids["first"])
    assert watched.code == 1
    assert "it [bold]broke[/]" in watched.out
