"""Notifications: added once, delivered when due, listed, read and limited."""

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
from duly.features.notifications import preferences, service
from duly.features.notifications.models import AddedNotification, NewNotification
from duly.features.notifications.recipient import in_app_address
from duly.features.notifications.store import add_notifications
from tests.features.notifications.delivering import (
    ANNA,
    RecordingChannel,
    deliver,
    delivery_results,
    dispatch,
    new_dispatcher,
)
from tests.features.schedules.scheduler_clock import Clock
from tests.worker.working import until

WAITS = """
    select exists (
        select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock')
"""
NOON = datetime(2026, 3, 17, 12, tzinfo=UTC)


async def test_a_recipient_gets_the_same_payload_once_per_bucket(app: Duly, org: uuid.UUID) -> None:
    async def send(**changes: object) -> list[bool]:
        values = {
            "to": ["in_app:u1", "email:Ann@Example.com"],
            "payload": {"a": 1, "b": "2026-01-01T00:00:00Z"},
        }
        sent = await app.notifications.send(org, "job.completed", actor=ANNA, **{**values, **changes})
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


async def test_an_invalid_notification_is_refused_and_nothing_is_added(
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
        values = {
            "org_id": org,
            "template_key": "job.failed",
            "payload": {},
            "to": ["in_app:u1"],
            "actor": ANNA,
        }
        with pytest.raises(DulyError) as refused:
            await app.notifications.send(**{**values, **changes})
        assert refused.value.field == field
    assert delivery_results(sql) == {}


async def test_a_due_notification_is_unread_in_the_inbox_until_it_is_read(
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
    await dispatch(new_dispatcher(app))
    page = await app.notifications.inbox(org, "u1", limit=2)
    rest = await app.notifications.inbox(org, "u1", limit=2, after=page.after)
    assert (page.unread, len(page.notifications), len(rest.notifications), rest.after) == (3, 2, 1, None)
    first = page.notifications[0]
    assert (first.subject, first.delivery_status, first.attempt_count) == (
        "report.build wurde erfolgreich beendet",
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
        "report.build failed"
    ]
    [pending] = (await app.notifications.list(org, status="pending")).notifications
    assert (pending.scheduled_at, pending.subject) == (late, None)
    Clock(sql, late)
    await dispatch(new_dispatcher(app))
    assert (await app.notifications.show(org, pending.notification_id)).sent_at == late


async def test_notifications_are_listed_by_delivery_status(app: Duly, org: uuid.UUID) -> None:
    for number in range(3):
        await app.notifications.send(
            org, "job.failed", {"n": number}, to=["in_app:u1", "email:a@example.com"], actor=ANNA
        )
    await dispatch(new_dispatcher(app))
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


async def test_a_filter_without_an_index_scans_a_bounded_number_per_page(
    app: Duly, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_MAX_SCANNED_ROWS", 3)
    for who in ("sms:u", *(f"in_app:{n}" for n in range(7)), "sms:v", "in_app:w"):
        await app.notifications.send(org, "job.failed", {}, to=who, actor=ANNA)
    found, pages, after = [], 0, None
    while after or not pages:
        page = await app.notifications.list(org, channel="sms", after=after)
        found, pages, after = [*found, *(one.recipient for one in page.notifications)], pages + 1, page.after
    assert (found, pages) == (["v", "u"], 4)
    exact = await app.notifications.list(org, channel="sms", recipient="u")
    assert ([one.recipient for one in exact.notifications], exact.after) == (["u"], None)


async def test_preferences_and_suppressions_are_checked_when_a_notification_is_due(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    app.notifications.add_channel("sms", sms := RecordingChannel())
    notifications = app.notifications
    for who in ("some", "none", "named", "gone", "back"):
        await notifications.send(org, "job.failed", {}, to=[f"sms:{who}", f"in_app:{who}"], actor=ANNA)
    for channel in ("sms", "in_app"):
        await notifications.preferences.set(org, f"{channel}:none", wanted=False, actor=ANNA)
        await notifications.preferences.set(org, f"{channel}:named", wanted=False, actor=ANNA)
        await notifications.preferences.set(
            org, f"{channel}:named", wanted=True, template_key="job.failed", actor=ANNA
        )
        for who in ("gone", "back"):
            await notifications.suppressions.add(org, f"{channel}:{who}", actor=ANNA, reason="has left")
        assert await notifications.suppressions.remove(org, f"{channel}:back", actor=ANNA, reason="is back")
        assert not await notifications.suppressions.remove(
            org, f"{channel}:back", actor=ANNA, reason="is back"
        )
    await deliver(app, sql)
    assert sorted(message.recipient for message in sms.messages) == ["back", "named", "some"]
    rows = sql.execute("select channel, recipient, delivery_status, last_error from duly.notifications")
    found = {(row[0], row[1]): row[2:] for row in rows.fetchall()}
    for channel in ("sms", "in_app"):
        assert found[channel, "none"] == ("suppressed", "the recipient opted out of job.failed")
        assert found[channel, "gone"] == ("suppressed", "the recipient is suppressed: has left")
        assert {found[channel, who] for who in ("back", "named", "some")} == {("sent", None)}
    assert [p.template_key for p in await notifications.preferences.of(org, "sms:named")] == [
        "",
        "job.failed",
    ]
    cleared = await notifications.preferences.set(org, "sms:named", wanted=None, actor=ANNA)
    assert [(p.template_key, p.wanted) for p in cleared] == [("job.failed", True)]
    page = await notifications.suppressions.list(org, limit=1)
    rest = await notifications.suppressions.list(org, limit=1, after=page.after)
    assert [s.channel for s in (*page.suppressions, *rest.suppressions)] == ["in_app", "sms"]
    audited = [entry.action for entry in (await app.audit.list(org)).entries]
    assert (audited.count("suppression.added"), audited.count("suppression.removed")) == (4, 2)


async def test_templates_of_an_org_take_precedence_locale_by_locale(app: Duly, org: uuid.UUID) -> None:
    templates = app.notifications.templates

    async def subject_of(locale: str, key: str = "job.failed") -> str:
        return (await templates.resolve(org, key, locale)).subject

    assert (await subject_of("de-at"), await subject_of("fr")) == (
        "{{ job_type }} ist fehlgeschlagen",
        "{{ job_type }} failed",
    )
    why = {"actor": ANNA, "reason": "our own words"}
    await templates.set(org, "job.failed", "en", subject="oh no", body="x", **why)
    await templates.set(org, "job.failed", "de-AT", subject="geh bitte", body="x", **why)
    await templates.set(org, "invoice.due", "de", subject="Rechnung {{ n }}", body="{{ n|number }}", **why)
    assert [await subject_of(one) for one in ("de-AT", "de", "en", "fr-CH")] == [
        "geh bitte",
        "{{ job_type }} ist fehlgeschlagen",
        "oh no",
        "oh no",
    ]
    with pytest.raises(UnknownTemplate):
        await subject_of("en", "invoice.due")
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
    assert await subject_of("fr") == "{{ job_type }} failed"
    with pytest.raises(NotFound):
        await templates.get(org, "job.failed", "en")
    audited = [entry.target_id for entry in (await app.audit.list(org)).entries]
    assert audited == ["job.failed/en", "invoice.due/de", "job.failed/de-AT", "job.failed/en"]


async def test_a_notification_added_by_two_transactions_at_once_is_added_once(
    org: uuid.UUID, database: Database, sql: psycopg.Connection
) -> None:
    one = NewNotification(org, "in_app", "u1", "job.failed", {"a": 1}, "system:x")

    async def add() -> list[AddedNotification]:
        async with database.engine() as conn:
            return await add_notifications(conn, [one])

    async with database.engine() as conn:
        first, same = await add_notifications(conn, [one, one])
        second = asyncio.create_task(add())
        await until(sql, WAITS)
    assert (first.created, same) == (True, AddedNotification(first.notification_id, False))
    assert await second == [same]


async def test_notifications_of_a_suspended_org_stay_pending(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    await app.notifications.send(org, "job.failed", {}, to="in_app:u1", actor=ANNA)
    await app.orgs.suspend(org, actor=Actor.operator("o"), reason="unpaid")
    await dispatch(new_dispatcher(app))
    assert delivery_results(sql)["u1"][0] == "pending"


async def test_pending_notifications_and_preferences_are_limited(
    app: Duly, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_PENDING_PER_ORG", 2)
    monkeypatch.setattr(preferences, "MAX_PREFERENCES_PER_RECIPIENT", 2)
    await app.notifications.send(org, "job.failed", {}, to=["in_app:1", "in_app:2"], actor=ANNA)
    with pytest.raises(LimitExceeded, match="2 notifications are pending"):
        await app.notifications.send(org, "job.failed", {}, to="in_app:3", actor=ANNA)
    await dispatch(new_dispatcher(app))
    await app.notifications.send(org, "job.failed", {}, to="in_app:3", actor=ANNA)
    wants = partial(app.notifications.preferences.set, org, "in_app:1", actor=ANNA)
    for key in ("a", "b", "a"):
        await wants(wanted=False, template_key=key)
    with pytest.raises(LimitExceeded, match="the recipient has 2 preferences"):
        await wants(wanted=False, template_key="c")
    assert [one.template_key for one in await wants(wanted=None, template_key="a")] == ["b"]


async def test_removing_a_member_ends_their_in_app_subscriptions(app: Duly, org: uuid.UUID) -> None:
    why = {"actor": ANNA, "reason": "r"}
    for who in ("eva", "ines"):
        await app.members.set(org, who, "viewer", **why)
        await app.subscriptions.subscribe(org, f"in_app:{who}", actor=Actor.user(who))
    await app.members.remove(org, "eva", **why)
    assert [one.recipient for one in (await app.subscriptions.list(org)).subscriptions] == ["ines"]


def test_each_actor_has_an_in_app_address_of_its_own() -> None:
    named = [Actor.user("k1"), Actor.api_key("k1"), Actor.user("api_key:k1"), Actor.operator("k1")]
    assert in_app_address(named[0]) == "k1"
    assert len({in_app_address(who) for who in named}) == 4
