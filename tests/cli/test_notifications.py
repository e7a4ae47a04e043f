"""`duly notifications`, `duly templates` and `duly subscriptions`."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from duly import Actor, Duly
from tests.cli.conftest import Run
from tests.features.notifications.delivering import dispatch, new_dispatcher

WHY = ("--reason", "because")


@pytest.fixture(autouse=True)
def _here(org: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ORG", str(org))


async def test_a_template_is_set_previewed_and_sent(duly: Run, app: Duly, tmp_path: Path) -> None:
    body = tmp_path / "body.txt"
    body.write_text("Fällig: {{ n|number }} €\n")
    words = ("--subject", "Rechnung {{ n }}", "--body", f"@{body}", "--locale", "de")
    made = await duly("templates", "set", "invoice.due", *words, *WHY, "--json")
    assert made.document["body"] == "Fällig: {{ n|number }} €\n"
    payload = ("--payload", '{"n": 1234}', "--locale", "de")
    tried = await duly("notifications", "preview", "invoice.due", *payload)
    assert tried.out.splitlines()[:3] == ["Rechnung 1234", "", "Fällig: 1.234 €"]
    sent = await duly(
        "notifications", "send", "invoice.due", "--to", "in_app:u1", "--to", "sms:1", *payload, "--json"
    )
    assert [one["created"] for one in sent.document["notifications"]] == [True, True]
    await dispatch(new_dispatcher(app))
    listed = (await duly("notifications", "list", "--status", "sent", "--json")).document["notifications"]
    assert [one["subject"] for one in listed] == ["Rechnung 1234"]
    shown = await duly("notifications", "show", listed[0]["notification_id"])
    assert "Fällig: 1.234 €" in shown.out
    assert (await duly("templates", "delete", "invoice.due", "--locale", "de", *WHY)).code == 0
    assert "invoice.due" not in (await duly("templates", "list")).out


async def test_recipients_are_suppressed_and_subscribed(duly: Run, app: Duly, org: uuid.UUID) -> None:
    await duly("notifications", "suppress", "email:Anna@Example.com", *WHY)
    assert "anna@example.com" in (await duly("notifications", "suppressed")).out
    assert (await duly("notifications", "unsuppress", "email:anna@example.com", *WHY)).code == 0
    assert (await duly("notifications", "suppressed", "--json")).document["suppressions"] == []
    when = ("--when", "failed", "--type", "shop.greet")
    made = (await duly("subscriptions", "create", "email:anna@example.com", *when, "--json")).document
    assert (made["outcomes"], made["job_type"]) == (["failed"], "shop.greet")
    assert made["subscription_id"] in (await duly("subscriptions", "list")).out
    assert (await duly("subscriptions", "delete", made["subscription_id"])).code == 0
    assert (await app.subscriptions.list(org, of=Actor.operator("nobody"))).subscriptions == ()


async def test_an_error_is_one_line(duly: Run) -> None:
    for words, code, part in (
        (("notifications", "send", "job.failed", "--to", "anna"), 4, "to: "),
        (("notifications", "send", "no.such", "--to", "in_app:u"), 3, "template_key"),
        (("notifications", "preview", "job.failed"), 4, "'job_type' is undefined"),
        (("notifications", "show", uuid.UUID(int=7)), 3, "no notification"),
        (
            ("templates", "set", "a.b", "--subject", "s", "--body", "{{ x() }}", *WHY),
            4,
            "call is not allowed",
        ),
        (("templates", "set", "a.b", "--subject", "s", "--body", "@nowhere", *WHY), 4, "body: "),
        (("subscriptions", "create", "in_app:u", "--when", "never"), 4, "outcomes"),
        (("subscriptions", "delete", uuid.UUID(int=7)), 3, "no subscription"),
    ):
        ended = await duly(*words)
        assert (ended.code, ended.out) == (code, ""), words
        assert part in ended.err
