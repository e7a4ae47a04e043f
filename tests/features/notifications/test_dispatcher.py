"""Dispatching: no org delays the notifications of another."""

from __future__ import annotations

import uuid
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from jinja2 import Template

from duly import Duly
from duly.features.notifications import preparation, store
from duly.features.notifications.dispatcher import NotificationDispatcher
from duly.features.templates import engine as templates
from tests.features.notifications.delivering import (
    ANNA,
    RecordingChannel,
    deliver,
    delivery_results,
    dispatch,
    new_dispatcher,
)

FACTS = {"job_type": "report.build", "job_id": "j1", "finished_at": "2026-03-17T08:15:00Z"}


async def test_an_org_at_its_quota_waits_without_delaying_other_orgs(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    app.notifications.add_channel("sms", kept := RecordingChannel())
    for whose in (org, other):
        to = ["sms:1", "sms:2", "in_app:1"]
        await app.notifications.send(whose, "job.failed", FACTS, to=to, actor=ANNA)
    await app.limits.set(org, actor=ANNA, reason="r", max_waiting=1)
    await dispatch(new_dispatcher(app))
    waiting = "select org_id from duly.notifications where delivery_job_id is null and channel = 'sms'"
    assert sql.execute(waiting).fetchall() == [(org,)]
    assert sql.execute("select count(*) from duly.notifications where sent_at is not null").fetchone() == (2,)
    await app.limits.set(org, actor=ANNA, reason="r", max_waiting=10)
    await deliver(app, sql)
    assert len(kept.messages) == 4


async def test_an_org_with_many_notifications_does_not_delay_other_orgs(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    for number in range(5):
        await app.notifications.send(org, "job.failed", {"n": number}, to="in_app:1", actor=ANNA)
    await app.notifications.send(other, "job.failed", FACTS, to="in_app:1", actor=ANNA)
    new_dispatcher(app)
    dispatcher = NotificationDispatcher(app, max_per_org=2)
    told = "select org_id, count(*) from duly.notifications where sent_at is not null group by 1"
    assert await dispatcher.once() == timedelta(0)
    assert dict(sql.execute(told).fetchall()) == {org: 2, other: 1}
    await dispatch(dispatcher)
    assert dict(sql.execute(told).fetchall()) == {org: 5, other: 1}


POISON = "{{ 1 }}"


async def test_a_notification_that_cannot_be_dispatched_fails_alone(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its template fails, or the statement that writes it."""
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    await app.notifications.templates.set(
        org, "my.own", "en", subject="s", body=POISON, actor=ANNA, reason="r"
    )
    for to in ("in_app:1", "sms:1"):
        await app.notifications.send(org, "my.own", FACTS, to=to, actor=ANNA)
    await app.notifications.send(other, "job.failed", FACTS, to="in_app:2", actor=ANNA)
    await app.notifications.send(org, "job.failed", FACTS, to="in_app:3", actor=ANNA)

    def broken(values: dict[str, Any], *_: Any, **__: Any) -> Any:
        raise NameError("name 'inf' is not defined at 10.0.0.1")

    app.notifications.add_channel("sms", RecordingChannel())
    compiled = templates._compile
    fake = Template("")
    fake.root_render_func = broken
    monkeypatch.setattr(
        templates,
        "_compile",
        lambda field, source, strict: fake if source == POISON else compiled(field, source, strict),
    )
    sql.execute(
        "alter table duly.notifications add check (recipient <> '3' or delivery_status = 'failed'"
        " or delivery_status = 'pending')"
    )
    await deliver(app, sql)
    assert {
        who: (status, error) for who, (status, _, error) in delivery_results(sql).items() if who != "1"
    } == {
        "2": ("sent", None),
        "3": ("failed", "could not be dispatched: CheckViolation"),
    }
    own = sql.execute(
        "select channel, delivery_status, last_error from duly.notifications where recipient = '1'"
    )
    assert {row[0]: (row[1], row[2].partition(" (")[0]) for row in own.fetchall()} == dict.fromkeys(
        ("in_app", "sms"), ("failed", "body: could not be rendered: NameError")
    )


async def test_an_error_with_the_jobs_of_an_org_does_not_affect_other_orgs(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    for whose in (org, other):
        await app.notifications.send(whose, "job.failed", FACTS, to=f"sms:{whose}", actor=ANNA)
    held = store.lock_due

    async def breaks(conn: Any, whose: uuid.UUID, ids: Any) -> Any:
        if whose == org:
            raise KeyError("odd")
        return await held(conn, whose, ids)

    monkeypatch.setattr(store, "lock_due", breaks)
    await dispatch(new_dispatcher(app))
    handed = "select org_id from duly.notifications where delivery_job_id is not null"
    assert sql.execute(handed).fetchall() == [(other,)]


async def test_slow_templates_of_an_org_do_not_delay_other_orgs(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = uuid.uuid4()
    await app.create_org(other, "Other")
    for number in range(3):
        await app.notifications.send(org, "job.failed", {"n": number}, to="in_app:1", actor=ANNA)
    await app.notifications.send(other, "job.failed", FACTS, to="in_app:1", actor=ANNA)
    clock = count(0.0, preparation._MAX_RENDER_SECONDS * 0.6)
    monkeypatch.setattr(preparation, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    dispatcher = new_dispatcher(app)
    assert await dispatcher.once() == timedelta(0)
    told = "select org_id, count(*) from duly.notifications where sent_at is not null group by 1"
    assert dict(sql.execute(told).fetchall()) == {org: 1, other: 1}
    await dispatch(dispatcher)
    assert dict(sql.execute(told).fetchall()) == {org: 3, other: 1}
