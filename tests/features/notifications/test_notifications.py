"""Notifications: noted once, told when they are due, read by whom they are for."""

from __future__ import annotations

import asyncio
import uuid
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg
import pytest

from duly import Actor, Duly
from duly.core.errors import (
    ContractError,
    DulyError,
    LimitExceeded,
    NotFound,
    UnknownNotification,
    UnknownTemplate,
)
from duly.db.database import Database
from duly.features.notifications import preferences as wishes
from duly.features.notifications import service as room
from duly.features.notifications import store as notifications
from duly.features.notifications.recipients import own_address
from duly.features.notifications.store import Added, NewNotification
from tests.features.notifications.telling import ANNA, Kept, outcomes, ready, take, tell
from tests.features.schedules.ticking import Clock
from tests.worker.working import until

WAITS = """
    select exists (
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
"""
NOON = datetime(2026, 3, 17, 12, tzinfo=UTC)


async def test_the_same_is_told_to_the_same_recipient_once_in_a_bucket(app: Duly, org: uuid.UUID) -> None:
    async def send(**changes: object) -> list[bool]:
        said = {
            "to": ["in_app:u1", "email:Ann@Example.com"],
            "payload": {"a": 1, "b": "2026-01-01T00:00:00Z"},
        }
        sent = await app.notifications.send(org, "job.completed", actor=ANNA, **{**said, **changes})
        return [one.created for one in sent]

    assert await send() == [True, True]
    assert await send() == [False, False]
    assert await send(payload={"b": "2026-01-01T01:00:00+01:00", "a": 1}) == [False, False]
    assert await send(to=["email:ann@example.com", "in_app:u2", "in_app:u2"]) == [False, True]
    assert await send(payload={"a": 2}) == [True, True]
    assert await send(bucket="x") == [True, True]
    assert await send(bucket="x") == [False, False]
    assert await send(scheduled_for=NOON) == [True, True]
    assert await send(scheduled_for=NOON + timedelta(hours=1)) == [False, False]
    first = (await app.notifications.send(org, "job.failed", {}, to="in_app:u1", actor=ANNA))[0]
    again = (await app.notifications.send(org, "job.failed", {}, to=["in_app:u1"], actor=ANNA))[0]
    assert (first.notification_id, again.created) == (again.notification_id, False)


async def test_what_cannot_be_told_is_refused_and_nothing_is_noted(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    wrong: list[tuple[dict[str, object], str]] = [
        ({"to": []}, "to"),
        ({"to": ["in_app:u"] + [f"in_app:{n}" for n in range(100)]}, "to"),
        ({"to": ["anna@example.com"]}, "to"),
        ({"to": ["email:anna"]}, "to"),
        ({"to": [f"webhook:{uuid.uuid4()}"]}, "to"),
        ({"template_key": "no.such"}, "template_key"),
        ({"template_key": "No Key"}, "template_key"),
        ({"locale": "german"}, "locale"),
        ({"payload": {"x": "y" * 17_000}}, "payload"),
        ({"template_key": "alert.firing"}, "template_key"),
        ({"template_key": "webhook.disabled"}, "template_key"),
        ({"to": ["sms:" + "\U0001f600" * 81]}, "to"),
        ({"bucket": "\U0001f600" * 51}, "bucket"),
        ({"payload": {"password": "hunter2-and-more"}}, "payload.password"),
        ({"payload": {"at": NOON}}, "payload"),
        ({"scheduled_for": datetime(2026, 1, 1)}, "scheduled_for"),
        ({"job_id": uuid.uuid4()}, "job_id"),
        ({"org_id": uuid.uuid4()}, "org_id"),
    ]
    for changes, field in wrong:
        said = {
            "org_id": org,
            "template_key": "job.failed",
            "payload": {},
            "to": ["in_app:u1"],
            "actor": ANNA,
        }
        with pytest.raises(DulyError) as refused:
            await app.notifications.send(**{**said, **changes})
        assert refused.value.field == field
    assert outcomes(sql) == {}


async def test_what_is_due_is_in_the_inbox_until_it_is_read(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    facts = {"job_type": "report.build", "finished_at": "2026-03-17T08:15:00Z"}
    late = datetime.now(UTC) + timedelta(days=1)
    for bucket in "abc":
        await app.notifications.send(
            org, "job.completed", facts, to="in_app:u1", locale="de", bucket=bucket, actor=ANNA
        )
    await app.notifications.send(org, "job.failed", facts, to="in_app:u1", scheduled_for=late, actor=ANNA)
    await app.notifications.send(org, "job.failed", facts, to="in_app:u2", actor=ANNA)
    assert (await app.notifications.inbox(org, "u1")).notifications == ()
    await take(ready(app))
    page = await app.notifications.inbox(org, "u1", limit=2)
    rest = await app.notifications.inbox(org, "u1", limit=2, after=page.after)
    assert (page.unread, len(page.notifications), len(rest.notifications), rest.after) == (3, 2, 1, None)
    first = page.notifications[0]
    assert (first.subject, first.delivery_status, first.attempt_count) == (
        "report.build ist fertig",
        "sent",
        1,
    )
    assert first.body
    assert "17.03.2026, 08:15 UTC" in first.body
    theirs = (await app.notifications.inbox(org, "u2")).notifications[0]
    assert await app.notifications.mark_read(org, "u1", [first.notification_id, theirs.notification_id]) == 1
    assert (await app.notifications.inbox(org, "u1", unread=True)).unread == 2
    assert await app.notifications.mark_read(org, "u1") == 2
    assert [n.subject for n in (await app.notifications.inbox(org, "u2", unread=True)).notifications] == [
        "report.build has failed"
    ]
    [pending] = (await app.notifications.list(org, status="pending")).notifications
    assert (pending.scheduled_at, pending.subject) == (late, None)
    Clock(sql, late)
    await take(ready(app))
    assert (await app.notifications.show(org, pending.notification_id)).sent_at == late


async def test_notifications_are_listed_by_what_became_of_them(app: Duly, org: uuid.UUID) -> None:
    for number in range(3):
        await app.notifications.send(
            org, "job.failed", {"n": number}, to=["in_app:u1", "email:a@example.com"], actor=ANNA
        )
    await take(ready(app))
    everything = await app.notifications.list(org, limit=4)
    more = await app.notifications.list(org, limit=4, after=everything.after)
    ids = [one.notification_id for one in (*everything.notifications, *more.notifications)]
    assert (len(ids), ids) == (6, sorted(ids, reverse=True))
    assert len((await app.notifications.list(org, status="sent", channel="in_app")).notifications) == 3
    assert len((await app.notifications.list(org, recipient="a@example.com", limit=2)).notifications) == 2
    assert (await app.notifications.show(org, ids[0])).notification_id == ids[0]
    stranger = uuid.uuid4()
    await app.create_org(stranger, "Stranger")
    with pytest.raises(UnknownNotification):
        await app.notifications.show(stranger, ids[0])
    assert (await app.notifications.list(stranger)).notifications == ()
    with pytest.raises(ContractError, match="status"):
        await app.notifications.list(org, status="lost")


async def test_a_filter_without_an_index_looks_at_so_many_and_goes_on(
    app: Duly, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "_LOOK", 3)
    for who in ("sms:u", *(f"in_app:{n}" for n in range(7)), "sms:v", "in_app:w"):
        await app.notifications.send(org, "job.failed", {}, to=who, actor=ANNA)
    found, pages, after = [], 0, None
    while after or not pages:
        page = await app.notifications.list(org, channel="sms", after=after)
        found, pages, after = [*found, *(one.recipient for one in page.notifications)], pages + 1, page.after
    assert (found, pages) == (["v", "u"], 4)
    exact = await app.notifications.list(org, channel="sms", recipient="u")
    assert ([one.recipient for one in exact.notifications], exact.after) == (["u"], None)


async def test_preferences_and_suppressions_are_asked_when_it_is_due(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    app.notifications.add_channel("sms", kept := Kept())
    told = app.notifications
    for who in ("some", "none", "named", "gone", "back"):
        await told.send(org, "job.failed", {}, to=[f"sms:{who}", f"in_app:{who}"], actor=ANNA)
    for channel in ("sms", "in_app"):
        await told.preferences.set(org, f"{channel}:none", wanted=False, actor=ANNA)
        await told.preferences.set(org, f"{channel}:named", wanted=False, actor=ANNA)
        await told.preferences.set(
            org, f"{channel}:named", wanted=True, template_key="job.failed", actor=ANNA
        )
        for who in ("gone", "back"):
            await told.suppressions.add(org, f"{channel}:{who}", actor=ANNA, reason="has left")
        assert await told.suppressions.remove(org, f"{channel}:back", actor=ANNA, reason="is back")
        assert not await told.suppressions.remove(org, f"{channel}:back", actor=ANNA, reason="is back")
    await tell(app, sql)
    assert sorted(message.recipient for message in kept.messages) == ["back", "named", "some"]
    rows = sql.execute("select channel, recipient, delivery_status, last_error from duly.notifications")
    found = {(row[0], row[1]): row[2:] for row in rows.fetchall()}
    for channel in ("sms", "in_app"):
        assert found[channel, "none"] == ("suppressed", "the recipient does not want job.failed")
        assert found[channel, "gone"] == ("suppressed", "nothing is sent to this recipient: has left")
        assert {found[channel, who] for who in ("back", "named", "some")} == {("sent", None)}
    assert [p.template_key for p in await told.preferences.of(org, "sms:named")] == ["", "job.failed"]
    cleared = await told.preferences.set(org, "sms:named", wanted=None, actor=ANNA)
    assert [(p.template_key, p.wanted) for p in cleared] == [("job.failed", True)]
    page = await told.suppressions.list(org, limit=1)
    rest = await told.suppressions.list(org, limit=1, after=page.after)
    assert [s.channel for s in (*page.suppressions, *rest.suppressions)] == ["in_app", "sms"]
    audited = [entry.action for entry in (await app.audit.list(org)).entries]
    assert (audited.count("suppression.added"), audited.count("suppression.removed")) == (4, 2)


async def test_an_orgs_own_words_win_language_by_language(app: Duly, org: uuid.UUID) -> None:
    templates = app.notifications.templates

    async def words(locale: str, key: str = "job.failed") -> str:
        return (await templates.words(org, key, locale)).subject

    assert (await words("de-at"), await words("fr")) == (
        "{{ job_type }} ist fehlgeschlagen",
        "{{ job_type }} has failed",
    )
    why = {"actor": ANNA, "reason": "our own words"}
    await templates.set(org, "job.failed", "en", subject="oh no", body="x", **why)
    await templates.set(org, "job.failed", "de-AT", subject="geh bitte", body="x", **why)
    await templates.set(org, "invoice.due", "de", subject="Rechnung {{ n }}", body="{{ n|number }}", **why)
    assert [await words(one) for one in ("de-AT", "de", "en", "fr-CH")] == [
        "geh bitte",
        "{{ job_type }} ist fehlgeschlagen",
        "oh no",
        "oh no",
    ]
    with pytest.raises(UnknownTemplate):
        await words("en", "invoice.due")
    assert await app.notifications.preview(org, "invoice.due", locale="de", payload={"n": 1234}) == (
        "Rechnung 1234",
        "1.234",
    )
    with pytest.raises(ContractError, match="'n' is undefined"):
        await app.notifications.preview(org, "invoice.due", locale="de")
    with pytest.raises(ContractError, match="call is not allowed"):
        await app.notifications.preview(org, subject="s", body="{{ x() }}")
    with pytest.raises(ContractError, match="body: line 1: call is not allowed"):
        await templates.set(org, "invoice.due", "en", subject="s", body="{{ x() }}", **why)
    page = await templates.list(org, limit=2)
    rest = await templates.list(org, after=page.after)
    listed = [(one.template_key, one.locale) for one in (*page.templates, *rest.templates)]
    assert listed == [("invoice.due", "de"), ("job.failed", "de-AT"), ("job.failed", "en")]
    await templates.remove(org, "job.failed", "en", **why)
    assert await words("fr") == "{{ job_type }} has failed"
    with pytest.raises(NotFound):
        await templates.get(org, "job.failed", "en")
    audited = [entry.target_id for entry in (await app.audit.list(org)).entries]
    assert audited == ["job.failed/en", "invoice.due/de", "job.failed/de-AT", "job.failed/en"]


async def test_two_who_add_the_same_at_once_add_it_once(
    org: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    one = NewNotification(org, "in_app", "u1", "job.failed", {"a": 1}, "system:x")

    async def add() -> list[Added]:
        async with database.engine() as conn:
            return await notifications.add(conn, [one])

    async with database.engine() as conn:
        first, same = await notifications.add(conn, [one, one])
        second = asyncio.create_task(add())
        await until(sql, WAITS)
    assert (first.created, same) == (True, Added(first.notification_id, False))
    assert await second == [same]


async def test_nobody_is_told_for_a_suspended_org(app: Duly, org: uuid.UUID, sql: psycopg.Connection) -> None:
    await app.notifications.send(org, "job.failed", {}, to="in_app:u1", actor=ANNA)
    await app.orgs.suspend(org, actor=Actor.operator("o"), reason="unpaid")
    await take(ready(app))
    assert outcomes(sql)["u1"][0] == "pending"


async def test_an_org_cannot_pile_up_what_nobody_was_told_yet(
    app: Duly, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "MOST_PENDING", 2)
    monkeypatch.setattr(wishes, "MOST_PREFERENCES", 2)
    await app.notifications.send(org, "job.failed", {}, to=["in_app:1", "in_app:2"], actor=ANNA)
    with pytest.raises(LimitExceeded, match="2 notifications are waiting"):
        await app.notifications.send(org, "job.failed", {}, to="in_app:3", actor=ANNA)
    await take(ready(app))
    await app.notifications.send(org, "job.failed", {}, to="in_app:3", actor=ANNA)
    wants = partial(app.notifications.preferences.set, org, "in_app:1", actor=ANNA)
    for key in ("a", "b", "a"):
        await wants(wanted=False, template_key=key)
    with pytest.raises(LimitExceeded, match="there are 2 already"):
        await wants(wanted=False, template_key="c")
    assert [one.template_key for one in await wants(wanted=None, template_key="a")] == ["b"]


async def test_whoever_has_left_is_told_nothing_more(app: Duly, org: uuid.UUID) -> None:
    why = {"actor": ANNA, "reason": "r"}
    for who in ("eva", "ines"):
        await app.members.set(org, who, "viewer", **why)
        await app.subscriptions.subscribe(org, f"in_app:{who}", actor=Actor.user(who))
    await app.members.remove(org, "eva", **why)
    assert [one.recipient for one in (await app.subscriptions.list(org)).subscriptions] == ["ines"]


def test_a_program_has_no_users_inbox() -> None:
    named = [Actor.user("k1"), Actor.api_key("k1"), Actor.user("api_key:k1"), Actor.operator("k1")]
    assert own_address(named[0]) == "k1"
    assert len({own_address(who) for who in named}) == 4
