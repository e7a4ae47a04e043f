"""`duly notifications`, `duly templates` and `duly subscriptions`."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from duly import Actor, Duly
from tests.cli.conftest import Run
from tests.features.notifications.delivering import dispatch, new_dispatcher

REASON = ("--reason", "because")


pytestmark = pytest.mark.usefixtures("org_environment")


async def test_a_template_is_set_previewed_and_sent(duly: Run, app: Duly, tmp_path: Path) -> None:
    body = tmp_path / "body.txt"
    body.write_text("Fällig: {{ n|number }} €\n")
    args = ("--subject", "Rechnung {{ n }}", "--body", f"@{body}", "--locale", "de")
    created = await duly("templates", "set", "invoice.due", *args, *REASON, "--json")
    assert created.document["body"] == "Fällig: {{ n|number }} €\n"
    payload = ("--payload", '{"n": 1234}', "--locale", "de")
    preview = await duly("notifications", "preview", "invoice.due", *payload)
    assert preview.out.splitlines()[:3] == ["Rechnung 1234", "", "Fällig: 1.234 €"]
    sent = await duly(
        "notifications", "send", "invoice.due", "--to", "in_app:u1", "--to", "sms:1", *payload, "--json"
    )
    assert [one["created"] for one in sent.document["notifications"]] == [True, True]
    await dispatch(new_dispatcher(app))
    listed = (await duly("notifications", "list", "--status", "sent", "--json")).document["notifications"]
    assert [one["subject"] for one in listed] == ["Rechnung 1234"]
    detail = await duly("notifications", "show", listed[0]["notification_id"])
    assert "Fällig: 1.234 €" in detail.out
    assert (await duly("templates", "delete", "invoice.due", "--locale", "de", *REASON)).code == 0
    assert "invoice.due" not in (await duly("templates", "list")).out


async def test_recipients_are_suppressed_and_subscribed(duly: Run, app: Duly, org: uuid.UUID) -> None:
    await duly("notifications", "suppress", "email:Anna@Example.com", *REASON)
    assert "anna@example.com" in (await duly("notifications", "suppressed")).out
    assert (await duly("notifications", "unsuppress", "email:anna@example.com", *REASON)).code == 0
    assert (await duly("notifications", "suppressed", "--json")).document["suppressions"] == []
    when = ("--when", "failed", "--type", "shop.greet")
    created = (await duly("subscriptions", "create", "email:anna@example.com", *when, "--json")).document
    assert (created["outcomes"], created["job_type"]) == (["failed"], "shop.greet")
    assert created["subscription_id"] in (await duly("subscriptions", "list")).out
    assert (await duly("subscriptions", "delete", created["subscription_id"])).code == 0
    assert (await app.subscriptions.list(org, of=Actor.operator("unknown"))).subscriptions == ()


async def test_an_error_is_one_line_with_its_exit_code(duly: Run) -> None:
    for args, code, part in (
        (("notifications", "send", "job.failed", "--to", "anna"), 4, "to: "),
        (("notifications", "send", "no.such", "--to", "in_app:u"), 3, "template_key"),
        (("notifications", "preview", "job.failed"), 4, "'job_type' is undefined"),
        (("notifications", "show", uuid.UUID(int=7)), 3, "no notification"),
        (
            ("templates", "set", "a.b", "--subject", "s", "--body", "{{ x() }}", *REASON),
            4,
            "call is not allowed",
        ),
        (("templates", "set", "a.b", "--subject", "s", "--body", "@nowhere", *REASON), 4, "body: "),
        (("subscriptions", "create", "in_app:u", "--when", "never"), 4, "outcomes"),
        (("subscriptions", "delete", uuid.UUID(int=7)), 3, "no subscription"),
    ):
        result = await duly(*args)
        assert (result.code, result.out) == (code, ""), args
        assert part in result.err
