"""People are told things, as somebody with a shell has it done."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest

from duly import Actor, Duly
from tests.cli.conftest import Run
from tests.notify.telling import ready, take

WHY = ("--reason", "because")


@pytest.fixture(autouse=True)
def _here(org: uuid.UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ORG", str(org))


async def test_words_are_set_tried_out_and_told(duly: Run, app: Duly, tmp_path: Path) -> None:
    body = tmp_path / "body.txt"
    body.write_text("Fällig: {{ n|number }} €\n")
    words = ("--subject", "Rechnung {{ n }}", "--body", f"@{body}", "--locale", "de")
    made = await duly("template", "set", "invoice.due", *words, *WHY, "--json")
    assert made.document["body"] == "Fällig: {{ n|number }} €\n"
    payload = ("--payload", '{"n": 1234}', "--locale", "de")
    tried = await duly("notify", "preview", "invoice.due", *payload)
    assert tried.out.splitlines()[:3] == ["Rechnung 1234", "", "Fällig: 1.234 €"]
    sent = await duly(
        "notify", "send", "invoice.due", "--to", "in_app:u1", "--to", "sms:1", *payload, "--json"
    )
    assert [one["created"] for one in sent.document["notifications"]] == [True, True]
    await take(ready(app))
    listed = (await duly("notify", "list", "--status", "sent", "--json")).document["notifications"]
    assert [one["subject"] for one in listed] == ["Rechnung 1234"]
    shown = await duly("notify", "show", listed[0]["notification_id"])
    assert "Fällig: 1.234 €" in shown.out
    assert (await duly("template", "remove", "invoice.due", "--locale", "de", *WHY)).code == 0
    assert "invoice.due" not in (await duly("template", "list")).out


async def test_whom_nothing_is_sent_to_and_who_is_told_of_jobs(duly: Run, app: Duly, org: uuid.UUID) -> None:
    await duly("notify", "suppress", "email:Anna@Example.com", *WHY)
    assert "anna@example.com" in (await duly("notify", "suppressed")).out
    assert (await duly("notify", "unsuppress", "email:anna@example.com", *WHY)).code == 0
    assert (await duly("notify", "suppressed", "--json")).document["suppressions"] == []
    when = ("--when", "failed", "--type", "shop.greet")
    made = (await duly("subscription", "add", "email:anna@example.com", *when, "--json")).document
    assert (made["outcomes"], made["job_type"]) == (["failed"], "shop.greet")
    assert made["subscription_id"] in (await duly("subscription", "list")).out
    assert (await duly("subscription", "remove", made["subscription_id"])).code == 0
    assert (await app.subscriptions.list(org, of=Actor.operator("nobody"))).subscriptions == ()


async def test_what_is_refused_is_said_in_one_line(duly: Run) -> None:
    for words, code, part in (
        (("notify", "send", "job.failed", "--to", "anna"), 4, "to: "),
        (("notify", "send", "no.such", "--to", "in_app:u"), 3, "template_key"),
        (("notify", "preview", "job.failed"), 4, "'job_type' is undefined"),
        (("notify", "show", uuid.UUID(int=7)), 3, "no notification"),
        (("template", "set", "a.b", "--subject", "s", "--body", "{{ x() }}", *WHY), 4, "call is not allowed"),
        (("template", "set", "a.b", "--subject", "s", "--body", "@nowhere", *WHY), 4, "body: "),
        (("subscription", "add", "in_app:u", "--when", "never"), 4, "outcomes"),
        (("subscription", "remove", uuid.UUID(int=7)), 3, "no subscription"),
    ):
        ended = await duly(*words)
        assert (ended.code, ended.out) == (code, ""), words
        assert part in ended.err
