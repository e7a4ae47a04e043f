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

REASON = ("--reason", "because")
ERROR_WITH_MARKUP = ErrorInfo(
    "shop.broken", "it [bold]broke[/] \x1b[31mred", "ValueError", {"exceptions": []}
)


@pytest.fixture
async def ids(
    duly: Run, org: uuid.UUID, database: Database, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    """Create four dead letters, a queued job, a key, a worker and notifications; return their ids."""
    monkeypatch.setenv("DULY_ORG", str(org))
    ids_by_name = {}
    for name in ("first", "second", "third", "fourth"):
        await duly("enqueue", "shop.greet", "--payload", '{"name": "Ada"}', "--key", name)
        ids_by_name[name] = await end_one(database, Retried(ERROR_WITH_MARKUP))
    queued = await duly("enqueue", "shop.sell", "--json")
    key = (await duly("api-keys", "create", "ci", "--scope", "jobs:read", *REASON, "--json")).document["key"]
    others = {"waiting": queued.document["job_id"], "key": key["key_id"], "new": uuid.uuid4(), "org": org}
    return {
        **ids_by_name,
        **others,
        "worker": await _register_worker(database),
        **await _create_notifications(duly),
    }


async def _register_worker(database: Database) -> uuid.UUID:
    """Register a worker that does nothing."""
    identity = WorkerIdentity(uuid.uuid4(), "new", "h", 1, "0", ("q:exports",), 1, timedelta(milliseconds=1))
    async with database.engine() as conn:
        await register(conn, identity)
    return identity.worker_id


async def _create_notifications(duly: Run) -> dict[str, Any]:
    """Create a webhook with a message, a notification and a subscription."""
    hook = await duly("webhooks", "create", "https://example.com/hook", "--event", "*", *REASON, "--json")
    endpoint = hook.document["endpoint"]["endpoint_id"]
    message = await duly("webhooks", "test", endpoint, *REASON, "--json")
    sent = await duly(
        "notifications", "send", "job.completed", "--to", "in_app:u1", "--bucket", "first", "--json"
    )
    added = await duly("subscriptions", "create", "in_app:u1", "--json")
    return {
        "hook": endpoint,
        "message": message.document["message_id"],
        "notification": sent.document["notifications"][0]["notification_id"],
        "subscription": added.document["subscription_id"],
    }


COMMAND_LINES = """
migrate
doctor
reconcile --dry-run
orgs create Acme --id {new} {reason}
enqueue shop.greet --payload {payload} --key k --priority 5 --at 2100-01-01T00:00:00Z --subject s-1
jobs list --status queued --limit 1
jobs show {waiting}
jobs bulk cancel --match type:shop.none {reason}
jobs cancel {waiting} {reason}
jobs watch {waiting}
jobs rerun {waiting} {reason}
queues list
queues stats
workers list
workers drain {worker} {reason}
queues create q:slow 2 {reason}
queues pause q:slow {reason}
queues resume q:slow {reason}
queues weight q:slow 3 {reason}
queues set q:slow --alert-depth 50 --alert-wait 60s {reason}
alerts list --all --kind queue_depth --limit 1
limits set --org {org} --type shop.greet --max-running 3 --starts-per-second 2.5 {reason}
limits pause --type shop.greet {reason}
limits resume --type shop.greet {reason}
limits list
dead-letters list --type shop.greet --limit 2
dead-letters groups
dead-letters show {first}
dead-letters replay {first} {reason}
dead-letters fix {second} --payload {payload} {reason}
dead-letters discard {third} {reason}
dead-letters replay-many --per-second 10 {reason}
dead-letters discard-many {reason}
schedules create nightly --cron 0,3,*,*,* --type shop.greet --payload {payload} {reason}
schedules list
schedules pause nightly {reason}
schedules resume nightly {reason}
schedules run nightly {reason}
schedules upcoming nightly --count 3
schedules ticks nightly --count 3
schedules delete nightly {reason}
members set eve admin {reason}
members list
members remove eve {reason}
api-keys create ci --scope jobs:read --scope jobs:write {reason}
api-keys rotate {key} --overlap-hours 2 {reason}
api-keys revoke {key} {reason}
api-keys list --limit 1
orgs suspend {new} {reason}
orgs resume {new} {reason}
orgs show {new}
orgs list --limit 1
webhooks create https://example.com/more --event job.failed {reason}
webhooks list
webhooks show {hook}
webhooks update {hook} --description chat {reason}
webhooks rotate {hook} {reason}
webhooks test {hook} {reason}
webhooks deliveries {hook} --limit 1
webhooks resend {hook} --failed-since 2026-01-01T00:00:00Z {reason}
webhooks disable {hook} {reason}
webhooks enable {hook} {reason}
webhooks delete {hook} {reason}
templates set job.failed --subject Oops --body Sorry {reason}
templates list
notifications preview job.failed
templates delete job.failed {reason}
notifications send job.completed --to in_app:u1
notifications list --limit 1
notifications show {notification}
notifications resend {notification} {reason}
notifications suppress email:eve@example.com {reason}
notifications suppressed
notifications unsuppress email:eve@example.com {reason}
subscriptions create in_app:u1 --type shop.greet
subscriptions list
subscriptions delete {subscription}
audit list --limit 2
audit verify
"""
SERVERS = {"worker", "serve", "up"}
"""Commands that run until a signal."""
STREAMS = {"events list", "audit export", "audit events", "jobs logs"}
"""Commands that print one line of JSON per item, with or without --json."""
TESTED_ELSEWHERE = "docs "
"""The prefix of commands that need tables of their own and have their own tests."""


def _arguments(line: str, ids: dict[str, Any]) -> list[str]:
    values = {**ids, "payload": '{"name":"Eve"}', "reason": "--reason because"}
    args = [arg.format(**values) for arg in line.split()]
    return [part for arg in args for part in _split(arg)]


def _split(arg: str) -> list[str]:
    return [arg.replace(",", " ")] if arg.startswith("0,") else arg.split()


async def test_every_command_prints_one_json_document(
    duly: Run, ids: dict[str, Any], sql: psycopg.Connection[Any]
) -> None:
    documents: dict[str, Any] = {}
    for line in COMMAND_LINES.strip().splitlines():
        result = await duly(*_arguments(line, ids), "--json")
        assert result.err == "", line
        # Jobs are queued, and there is no worker.
        assert result.code == (1 if line.startswith(("jobs watch", "doctor")) else 0), line
        documents[" ".join(line.split()[:2])] = result.document
    paths = [path for path in commands() if not path.startswith(TESTED_ELSEWHERE)]
    expected = {" ".join(path.split()[:2]) for path in paths} - SERVERS - STREAMS
    assert {
        command.removesuffix(" shop.greet").removesuffix(" --dry-run") for command in documents
    } == expected
    assert documents["migrate"] == {"applied": []}
    assert documents["jobs show"]["explanation"]
    assert [job["job_id"] for job in documents["jobs list"]["jobs"]] == [
        documents["enqueue shop.greet"]["job_id"]
    ]
    assert documents["jobs list"]["after"]
    assert documents["jobs cancel"]["status"] == "canceled"
    assert documents["queues weight"]["weight"] == 3
    assert documents["queues pause"]["paused_by"] == f"operator:{getpass.getuser()}"
    assert (documents["limits set"]["max_running"], documents["limits set"]["starts_per_second"]) == (3, 2.5)
    assert documents["limits list"]["limits"][0]["job_type"] == "shop.greet"
    assert len(documents["dead-letters list"]["letters"]) == 2
    assert documents["dead-letters groups"]["groups"][0]["letters"] == 4
    assert documents["dead-letters show"]["payload"] == {"name": "Ada"}
    assert documents["dead-letters show"]["kept"] is True, "the JSON name of job_retained"
    assert len(documents["dead-letters replay-many"]["replayed"]) == 1
    assert documents["dead-letters discard-many"] == {"discarded": 0}
    assert documents["schedules create"]["cron"] == "0 3 * * *"
    assert [at[10:] for at in documents["schedules upcoming"]["upcoming"]] == ["T03:00:00Z"] * 3
    assert documents["schedules ticks"] == {"name": "nightly", "ticks": []}
    assert documents["members remove"]["role"] == "admin"
    assert documents["api-keys create"]["text"].split("_")[2] == documents["api-keys create"]["key"]["key_id"]
    assert documents["api-keys revoke"]["alive"] is False
    assert (documents["orgs suspend"]["status"], documents["orgs show"]["status"]) == ("suspended", "active")
    assert documents["orgs list"]["after"]
    audited = sql.execute("select distinct actor_type, reason from duly.audit_entries").fetchall()
    assert audited == [("operator", "because")]
    assert sql.execute("select count(*) from duly.audit_entries where request_id is null").fetchone() == (0,)


async def test_every_command_prints_text_without_control_characters(duly: Run, ids: dict[str, Any]) -> None:
    out = ""
    for line in COMMAND_LINES.strip().splitlines():
        result = await duly(*_arguments(line, ids))
        assert (result.code, result.err) == (1 if line.startswith(("jobs watch", "doctor")) else 0, ""), line
        assert result.out, line
        out += result.out
    assert "it [bold]broke[/]" in out
    assert "\x1b" not in out
    for text in ("up to date", "canceled", "q:slow", "next page: --after ", "shop.broken", "job.queued"):
        assert text in out


async def test_replay_many_prints_the_new_jobs_and_when_the_last_one_runs(
    duly: Run, ids: dict[str, Any]
) -> None:
    result = await duly("dead-letters", "replay-many", "--per-second", "0.1", *REASON)
    new = (await duly("jobs", "list", "--status", "queued", "--type", "shop.greet", "--json")).document[
        "jobs"
    ]
    assert len(new) == 4
    last = max(job["run_at"] for job in new)
    first_line, *lines = result.out.splitlines()
    assert first_line == "replayed 4, left 0"
    assert {line.strip() for line in lines} >= {"new job", *(job["job_id"] for job in new)}
    assert f"last run  {last[:10]} {last[11:19]}Z" in result.out
    assert "because" not in result.out
    again = await duly("dead-letters", "replay-many", "--per-second", "1", *REASON)
    assert again.out == "replayed 0, left 0\n"


async def test_the_ticks_of_a_schedule_are_listed_with_their_disposition(
    duly: Run, org: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    greet = ("--type", "shop.greet", "--payload", '{"name":"Eve"}')
    await duly("schedules", "create", "hourly", "--org", org, "--cron", "@hourly", *greet, *REASON)
    sql.execute("update duly.schedules set counted_until = now() - interval '90 min'")
    await duly("schedules", "pause", "hourly", "--org", org, *REASON)
    await duly("schedules", "resume", "hourly", "--org", org, *REASON)
    ticks = (await duly("schedules", "ticks", "hourly", "--org", org, "--json")).document["ticks"]
    assert {tick["disposition"] for tick in ticks} == {"missed"}
    result = await duly("schedules", "ticks", "hourly", "--org", org, "--count", "1")
    assert f"{ticks[0]['tick_at'][11:19]}Z  missed" in result.out
    assert len(result.out.splitlines()) == 2


async def test_a_payload_is_text_a_file_or_stdin(
    duly: Run, org: uuid.UUID, tmp_path: Path, sql: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "payload.json"
    file.write_text('{"name": "file"}')
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "input"}')))
    for payload_argument in ('{"name": "text"}', f"@{file}", "-"):
        assert (await duly("enqueue", "shop.greet", "--org", org, "--payload", payload_argument)).code == 0
    names = sql.execute("select payload ->> 'name' from duly.job_records order by job_id").fetchall()
    assert names == [("text",), ("file",), ("input",)]


async def test_enqueue_sets_every_option_of_the_job(duly: Run, org: uuid.UUID) -> None:
    line = ["enqueue", "shop.greet", "--org", org, "--payload", '{"name": "Ada"}', "--key", "k"]
    job_options = [
        "--priority",
        "7",
        "--subject",
        "s-1",
        "--at",
        "2100-01-01T01:00:00+01:00",
        "--actor",
        "ops",
    ]
    first = (await duly(*line, *job_options, "--json")).document
    assert (await duly(*line, *job_options, "--json")).document == {**first, "created": False}
    job = (await duly("jobs", "show", first["job_id"], "--org", org, "--json")).document["job"]
    assert (job["priority"], job["subject_id"], job["run_at"]) == (7, "s-1", "2100-01-01T00:00:00Z")
    assert (job["actor_type"], job["actor_id"], job["idempotency_key"]) == ("operator", "ops", "k")


async def test_commands_without_job_types_need_no_application(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DULY_APP")
    org = (await duly("orgs", "create", "Acme", "--json")).document
    assert (await duly("jobs", "list", "--org", org["org_id"], "--json")).document == {
        "jobs": [],
        "after": None,
    }
    refused = await duly("enqueue", "shop.greet", "--org", org["org_id"])
    assert (refused.code, "--app" in refused.err) == (2, True)


async def test_a_limit_applies_to_every_org_only_without_an_org(
    duly: Run, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_ORG", str(uuid.uuid4()))
    of_org = (await duly("limits", "set", "--org", org, "--max-running", "2", *REASON, "--json")).document
    assert (of_org["org_id"], of_org["max_running"]) == (str(org), 2)
    of_every_org = await duly(
        "limits", "set", "--type", "shop.greet", "--max-running", "4", *REASON, "--json"
    )
    assert (of_every_org.document["org_id"], of_every_org.document["max_running"]) == (None, 4)
    lifted = (await duly("limits", "set", "--org", org, "--max-running", "none", *REASON, "--json")).document
    assert lifted["max_running"] is None
    assert len((await duly("limits", "list", "--json")).document["limits"]) == 2


async def test_watch_prints_the_error_of_a_job_without_markup(duly: Run, ids: dict[str, Any]) -> None:
    result = await duly("jobs", "watch", ids["first"])
    assert result.code == 1
    assert "it [bold]broke[/]" in result.out
