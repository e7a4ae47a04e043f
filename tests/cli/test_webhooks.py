"""`duly webhooks`."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import psycopg
import pytest

from duly.core.job import SYSTEM_ORG
from tests.cli.conftest import Run

WHY = ("--reason", "because")
URL = "https://hooks.example.com/duly"


@pytest.fixture(autouse=True)
def _here(org: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ORG", str(org))


async def test_a_webhook_is_managed_and_its_secrets_are_shown_once(duly: Run, tmp_path: Path) -> None:
    created = await duly("webhooks", "create", URL, "--event", "job.completed", "--event", "job.failed", *WHY)
    lines = dict(line.split() for line in created.out.splitlines())
    endpoint_id, own = lines["endpoint"], "whsec_" + base64.b64encode(b"x" * 32).decode()
    (tmp_path / "secret").write_text(f"{own}\n")
    rotated = await duly(
        "webhooks",
        "rotate",
        endpoint_id,
        "--secret-from",
        tmp_path / "secret",
        "--overlap-hours",
        "0.5",
        *WHY,
        "--json",
    )
    assert rotated.document["secret"] == own
    outputs = [await duly("webhooks", "update", endpoint_id, "--event", "job.*", "--type", "mail.send", *WHY)]
    outputs += [await duly("webhooks", "update", endpoint_id, "--all-types", "--description", "chat", *WHY)]
    outputs += [
        await duly("webhooks", "disable", endpoint_id, *WHY),
        await duly("webhooks", "enable", endpoint_id, *WHY),
    ]
    outputs += [
        await duly("webhooks", "list"),
        await duly("webhooks", "show", endpoint_id),
        await duly("audit", "list"),
    ]
    assert [ended.code for ended in outputs] == [0] * len(outputs)
    [now] = (await duly("webhooks", "list", "--json")).document["endpoints"]
    assert (now["event_types"], now["job_types"], now["description"]) == (["job.*"], None, "chat")
    assert not [one for one in outputs for secret in (lines["secret"], own) if secret in one.out + one.err]
    assert (await duly("webhooks", "delete", endpoint_id, *WHY)).out == "deleted\n"
    assert (await duly("webhooks", "show", endpoint_id)).code == 3
    system = await duly("webhooks", "create", URL, "--org", "platform", "--event", "*", *WHY, "--json")
    assert system.document["endpoint"]["org_id"] == str(SYSTEM_ORG)


async def test_deliveries_are_listed_and_resent(duly: Run, sql: psycopg.Connection) -> None:
    created = await duly("webhooks", "create", URL, "--event", "*", *WHY, "--json")
    endpoint_id = created.document["endpoint"]["endpoint_id"]
    sent = (await duly("webhooks", "test", endpoint_id, *WHY, "--json")).document
    sql.execute(
        """update duly.webhook_deliveries set status = 'failed', ended_at = now(), try_log = %s""",
        ['[{"error": "HTTP 500"}]'],
    )
    listed = await duly(
        "webhooks", "deliveries", endpoint_id, "--status", "failed", "--event", "webhook.test"
    )
    assert sent["message_id"] in listed.out
    assert "HTTP 500" in listed.out
    again = await duly("webhooks", "resend", endpoint_id, sent["message_id"], *WHY)
    assert "pending" in again.out
    sql.execute("update duly.webhook_deliveries set status = 'failed', ended_at = now()")
    many = await duly("webhooks", "resend", endpoint_id, "--failed-since", "2026-01-01T00:00:00Z", *WHY)
    assert many.out == "resent 1\n"
    [one] = (await duly("webhooks", "deliveries", endpoint_id, "--json")).document["deliveries"]
    assert (one["status"], one["try_log"]) == ("pending", [{"error": "HTTP 500"}])


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (("create", "http://example.com", "--event", "*", *WHY), 4, "url: plain HTTP"),
        (("create", URL, "--event", "job.done", *WHY), 4, "use some of job.queued"),
        (("create", URL, "--event", "*", "--secret-from", "nowhere", *WHY), 2, "nowhere"),
        (("resend", uuid.UUID(int=7), *WHY), 2, "--failed-since"),
        (("update", uuid.UUID(int=7), "--type", "a", "--all-types", *WHY), 2, "either"),
        (("rotate", uuid.UUID(int=7), *WHY), 3, "no webhook"),
    ],
)
async def test_an_error_is_one_line(duly: Run, words: tuple[object, ...], code: int, part: str) -> None:
    ended = await duly("webhooks", *words)
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (code, "", 1)
    assert part in ended.err
