"""`duly webhooks`."""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import psycopg
import pytest

from duly.core.job import SYSTEM_ORG
from tests.cli.conftest import Run

REASON = ("--reason", "because")
URL = "https://hooks.example.com/duly"


pytestmark = pytest.mark.usefixtures("org_environment")


async def test_a_webhook_is_managed_and_its_secrets_are_shown_once(duly: Run, tmp_path: Path) -> None:
    created = await duly(
        "webhooks", "create", URL, "--event", "job.completed", "--event", "job.failed", *REASON
    )
    lines = dict(line.split() for line in created.out.splitlines())
    endpoint_id, custom_secret = lines["endpoint"], "whsec_" + base64.b64encode(b"x" * 32).decode()
    (tmp_path / "secret").write_text(f"{custom_secret}\n")
    rotated = await duly(
        "webhooks",
        "rotate",
        endpoint_id,
        "--secret-from",
        tmp_path / "secret",
        "--overlap-hours",
        "0.5",
        *REASON,
        "--json",
    )
    assert rotated.document["secret"] == custom_secret
    outputs = [
        await duly("webhooks", "update", endpoint_id, "--event", "job.*", "--type", "mail.send", *REASON)
    ]
    outputs += [
        await duly("webhooks", "update", endpoint_id, "--all-types", "--description", "chat", *REASON)
    ]
    outputs += [
        await duly("webhooks", "disable", endpoint_id, *REASON),
        await duly("webhooks", "enable", endpoint_id, *REASON),
    ]
    outputs += [
        await duly("webhooks", "list"),
        await duly("webhooks", "show", endpoint_id),
        await duly("audit", "list"),
    ]
    assert [result.code for result in outputs] == [0] * len(outputs)
    [webhook] = (await duly("webhooks", "list", "--json")).document["endpoints"]
    assert (webhook["event_types"], webhook["job_types"], webhook["description"]) == (["job.*"], None, "chat")
    assert not [
        one for one in outputs for secret in (lines["secret"], custom_secret) if secret in one.out + one.err
    ]
    assert (await duly("webhooks", "delete", endpoint_id, *REASON)).out == "deleted\n"
    assert (await duly("webhooks", "show", endpoint_id)).code == 3
    system = await duly("webhooks", "create", URL, "--org", "platform", "--event", "*", *REASON, "--json")
    assert system.document["endpoint"]["org_id"] == str(SYSTEM_ORG)


async def test_deliveries_are_listed_and_resent(duly: Run, sql: psycopg.Connection) -> None:
    created = await duly("webhooks", "create", URL, "--event", "*", *REASON, "--json")
    endpoint_id = created.document["endpoint"]["endpoint_id"]
    sent = (await duly("webhooks", "test", endpoint_id, *REASON, "--json")).document
    sql.execute(
        """update duly.webhook_deliveries set status = 'failed', ended_at = now(), try_log = %s""",
        ['[{"error": "HTTP 500"}]'],
    )
    listed = await duly(
        "webhooks", "deliveries", endpoint_id, "--status", "failed", "--event", "webhook.test"
    )
    assert sent["message_id"] in listed.out
    assert "HTTP 500" in listed.out
    again = await duly("webhooks", "resend", endpoint_id, sent["message_id"], *REASON)
    assert "pending" in again.out
    sql.execute("update duly.webhook_deliveries set status = 'failed', ended_at = now()")
    many = await duly("webhooks", "resend", endpoint_id, "--failed-since", "2026-01-01T00:00:00Z", *REASON)
    assert many.out == "resent 1\n"
    [one] = (await duly("webhooks", "deliveries", endpoint_id, "--json")).document["deliveries"]
    assert (one["status"], one["try_log"]) == ("pending", [{"error": "HTTP 500"}])


@pytest.mark.parametrize(
    ("args", "code", "part"),
    [
        (("create", "http://example.com", "--event", "*", *REASON), 4, "url: plain HTTP"),
        (("create", URL, "--event", "job.done", *REASON), 4, "use some of job.queued"),
        (("create", URL, "--event", "*", "--secret-from", "nowhere", *REASON), 2, "nowhere"),
        (("resend", uuid.UUID(int=7), *REASON), 2, "--failed-since"),
        (("update", uuid.UUID(int=7), "--type", "a", "--all-types", *REASON), 2, "either"),
        (("rotate", uuid.UUID(int=7), *REASON), 3, "no webhook"),
    ],
)
async def test_an_error_is_one_line_with_its_exit_code(
    duly: Run, args: tuple[object, ...], code: int, part: str
) -> None:
    result = await duly("webhooks", *args)
    assert (result.code, result.out, len(result.err.splitlines())) == (code, "", 1)
    assert part in result.err
