"""Delivery of notifications: retries, fences, and isolation between orgs."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY

from duly import Actor, Duly, Fail, Retry
from duly.core.errors import ConfigurationError, Conflict, UnknownNotification
from duly.features.notifications.channels import Bounced
from duly.features.notifications.delivery_job import JOB_TYPE
from duly.features.notifications.email import Email, MailServer
from duly.jobs.request_context import context_log_fields
from tests.features.notifications.delivering import (
    ANNA,
    RecordingChannel,
    deliver,
    delivery_results,
    dispatch,
    new_dispatcher,
)
from tests.features.notifications.mail_server import start_mail_server
from tests.worker.working import ONE_ATTEMPT, TWO_ATTEMPTS, until, working

OPERATOR = Actor.operator("otto")
FACTS = {"job_type": "report.build", "job_id": "j1", "finished_at": "2026-03-17T08:15:00Z"}


async def test_mail_is_retried_while_the_server_is_busy_and_a_bounced_address_is_suppressed(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    to = [f"email:{who}@example.com" for who in ("anna", "busy", "gone", "spam")]
    with start_mail_server() as box:
        server = MailServer.parse(f"{box.url}?starttls=never", "Duly <duly@example.com>")
        app.notifications.add_channel("email", Email(server))
        box.refusals = {
            "busy@example.com": ["451 4.3.0 later", "421 4.3.2 later"],
            "gone@example.com": ["550 5.1.1 no mailbox gone@example.com"],
            "spam@example.com": ["554 5.7.1 relay-7.corp.internal [10.3.4.5] says no"],
        }
        await app.notifications.send(org, "job.completed", FACTS, to=to, locale="de", actor=ANNA)
        await deliver(app, sql)
    found = delivery_results(sql)
    assert found["anna@example.com"] == ("sent", 1, None)
    assert found["busy@example.com"] == ("sent", 3, "the mail server replied: 421 4.3.2")
    assert found["gone@example.com"] == ("failed", 1, "the mail server replied: 550 5.1.1")
    assert found["spam@example.com"] == ("failed", 1, "the mail server replied: 554 5.7.1")
    assert {mail["Subject"] for mail in box.messages} == {"report.build wurde erfolgreich beendet"}
    [bounced] = (await app.notifications.suppressions.list(org)).suppressions
    assert (bounced.recipient, bounced.created_by) == ("gone@example.com", "system:notifier")
    assert "5.1.1" in bounced.reason
    [noted] = [one for one in (await app.audit.list(org)).entries if one.action == "suppression.added"]
    assert noted.target_id == "email:g***@example.com", (
        "audit entries are stored for ever, so the address is masked"
    )
    assert sql.execute("select count(*) from duly.dead_letters").fetchone() == (0,)


async def test_an_unreachable_mail_server_fails_the_message_without_a_dead_letter(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    app.notifications.add_channel("email", Email(MailServer.parse("smtp://127.0.0.1:1", "duly@example.com")))
    [sent] = await app.notifications.send(org, "job.failed", FACTS, to="email:a@example.com", actor=ANNA)
    await deliver(app, sql, TWO_ATTEMPTS)
    found = await app.notifications.show(org, sent.notification_id)
    assert (found.delivery_status, found.attempt_count) == ("failed", 2)
    assert found.last_error
    assert "refused" in found.last_error
    assert found.delivery_job_id
    job = await app.handle(found.delivery_job_id, org_id=org).status()
    assert (job.job_type, job.queue, job.category) == (JOB_TYPE, "q:notifications", "notification")
    assert (job.outcome, job.error_code, job.attempt) == ("failed", "notification.undelivered", 2)
    assert sql.execute("select count(*) from duly.dead_letters").fetchone() == (0,)


async def test_a_failed_notification_is_resent_once_and_by_another_job(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    notifications, why = app.notifications, {"actor": OPERATOR, "reason": "the line is mended"}
    notifications.add_channel(
        "sms", channel := RecordingChannel(Fail("cut", code="sms.cut"), Fail("cut", code="sms.cut"))
    )
    to = ["sms:+49 1", "in_app:gone"]
    await notifications.suppressions.add(org, "in_app:gone", actor=ANNA, reason="has left")
    call, inbox = await notifications.send(org, "job.failed", FACTS, to=to, actor=ANNA)
    await deliver(app, sql)
    jobs = set()
    for tries in (1, 2):
        failed = await notifications.show(org, call.notification_id)
        assert (failed.delivery_status, failed.attempt_count) == ("failed", tries)
        jobs.add(failed.delivery_job_id)
        again = await notifications.resend(org, call.notification_id, **why)
        assert (again.delivery_status, again.delivery_job_id) == ("pending", None)
        assert await notifications.resend(org, str(call.notification_id), **why) == again, (
            "it is already pending"
        )
        await deliver(app, sql)
    sent = await notifications.show(org, call.notification_id)
    assert (sent.delivery_status, sent.attempt_count, len(channel.messages)) == ("sent", 3, 1)
    assert len({*jobs, sent.delivery_job_id}) == 3
    with pytest.raises(Conflict, match="the notification was sent"):
        await notifications.resend(org, call.notification_id, **why)
    await notifications.resend(org, inbox.notification_id, **why)
    await deliver(app, sql)
    assert (await notifications.show(org, inbox.notification_id)).delivery_status == "suppressed", (
        "suppressions are checked again"
    )
    await notifications.suppressions.remove(org, "in_app:gone", actor=ANNA, reason="is back")
    await notifications.resend(org, inbox.notification_id, **why)
    await deliver(app, sql)
    assert (await notifications.inbox(org, "gone")).unread == 1
    noted = (await app.audit.list(org, action="notification")).entries
    assert [(one.action, one.detail["to"]) for one in noted] == [
        *[("notification.resent", "in_app:gone")] * 2,
        *[("notification.resent", "sms:+***")] * 2,
    ]
    with pytest.raises(UnknownNotification):
        await notifications.resend(org, uuid.uuid4(), **why)


async def test_the_errors_of_a_channel_decide_the_delivery_status(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    class Plain:
        def send(self, message: Any) -> None:
            assert (message.recipient, message.subject) == ("on a thread", "report.build failed")
            assert message.payload == FACTS
            threads.append(context_log_fields().get("job_type"))

    threads: list[Any] = []
    channels = {
        "plain": Plain(),
        "steady": RecordingChannel(),
        "shaky": RecordingChannel(RuntimeError("token=hunter2"), Retry("not yet", after=0)),
        "strict": RecordingChannel(Fail("never")),
        "bounces": RecordingChannel(Bounced("no such number")),
        "quits": RecordingChannel(*[ValueError("again")] * 9),
    }
    for name, channel in channels.items():
        app.notifications.add_channel(name, channel)
    names = {**dict.fromkeys(channels, "x"), "plain": "on a thread", "unheard_of": "y"}
    to = [f"{name}:{recipient}" for name, recipient in names.items()]
    await app.notifications.send(org, "job.failed", FACTS, to=to, actor=ANNA)
    await deliver(app, sql)
    assert threads == [JOB_TYPE], "what it logs is known by its job"
    rows = sql.execute("select channel, delivery_status, attempt_count, last_error from duly.notifications")
    assert {row[0]: row[1:] for row in rows.fetchall()} == {
        "plain": ("sent", 1, None),
        "steady": ("sent", 1, None),
        "shaky": ("sent", 3, "not yet"),
        "strict": ("failed", 1, "never"),
        "bounces": ("failed", 1, "no such number"),
        "quits": ("failed", 5, "again"),
        "unheard_of": (
            "failed",
            5,
            "this worker has no channel 'unheard_of': add it to the application of the workers",
        ),
    }
    errors = sql.execute("select coalesce(string_agg(error_message, ''), '') from duly.job_states").fetchone()
    assert "hunter2" not in str(errors)
    for name, wrong in (
        ("in_app", RecordingChannel()),
        ("X", RecordingChannel()),
        ("sms", RecordingChannel),
        ("sms", object()),
    ):
        with pytest.raises((ConfigurationError, Exception), match=r"channel|to:"):
            app.notifications.add_channel(name, wrong)


async def test_a_sent_notification_is_not_sent_again_by_a_rerun_of_its_job(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    app.notifications.add_channel("sms", channel := RecordingChannel())
    [sent] = await app.notifications.send(org, "job.failed", FACTS, to="sms:1", actor=ANNA)
    dispatcher = new_dispatcher(app)
    await dispatch(dispatcher)
    await dispatch(dispatcher)
    [(job_id,)] = sql.execute("select job_id from duly.job_records").fetchall()
    async with working(app):
        await app.handle(job_id, org_id=org).wait(20)
        again = await app.dead_letters.rerun(org, job_id, actor=OPERATOR, reason="once more")
        assert await again.result(20) == "not pending"
    assert len(channel.messages) == 1
    assert channel.messages[0].notification_id == sent.notification_id


async def test_a_canceled_or_deleted_delivery_job_leaves_no_notification_pending(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    app.notifications.add_channel("sms", RecordingChannel())
    await app.notifications.send(org, "job.failed", FACTS, to=["sms:1", "sms:2"], actor=ANNA)
    await dispatch(new_dispatcher(app))
    [first, second] = sql.execute(
        "select delivery_job_id from duly.notifications order by recipient"
    ).fetchall()
    await app.jobs.cancel(org, first[0], actor=OPERATOR, reason="not now")
    sql.execute("delete from duly.ready")
    sql.execute("delete from duly.job_records where job_id = %s", [second[0]])
    await dispatch(new_dispatcher(app))
    assert delivery_results(sql) == {
        "1": ("failed", 0, "not now"),
        "2": ("failed", 0, "the delivery was deleted"),
    }


async def test_neither_templates_nor_mail_servers_nor_quotas_keep_a_job_from_ending(
    app: Duly, org: uuid.UUID, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    @app.job("report.build", retry=ONE_ATTEMPT)
    async def build(fail: bool) -> int:
        if fail:
            raise ValueError("no")
        return 1

    why = {"actor": ANNA, "reason": "r"}
    await app.notifications.templates.set(org, "job.completed", "en", subject="{{ a < 1 }}", body="", **why)
    app.notifications.add_channel("email", Email(MailServer.parse("smtp://127.0.0.1:1", "duly@example.com")))
    for to in ("in_app:u1", "email:a@example.com", "sms:1"):
        await app.subscriptions.subscribe(org, to, actor=ANNA)
    good, bad = await build.enqueue(False), await build.enqueue(True)
    await app.limits.set(org, actor=ANNA, reason="not one more", max_waiting=0)
    app.settings = app.settings.model_copy(update={"maintenance": True})
    new_dispatcher(app, ONE_ATTEMPT)
    async with working(app):
        assert (await good.wait(20)).status == "completed"
        assert (await bad.wait(20)).outcome == "dead"
        settled = "select count(*) filter (where channel = 'in_app' and delivery_status <> 'pending') = 2"
        await until(sql, f"{settled} from duly.notifications")
    handed = "select count(*), count(delivery_job_id) from duly.notifications"
    assert sql.execute(handed).fetchone() == (6, 0)
    await app.limits.set(org, actor=ANNA, reason="go on", max_waiting=None)
    await deliver(app, sql, ONE_ATTEMPT)
    found = sql.execute(
        "select template_key, channel, delivery_status from duly.notifications order by 1, 2"
    ).fetchall()
    assert found == [
        ("job.completed", "email", "failed"),
        ("job.completed", "in_app", "failed"),
        ("job.completed", "sms", "failed"),
        ("job.dead", "email", "failed"),
        ("job.dead", "in_app", "sent"),
        ("job.dead", "sms", "failed"),
    ]
    broken = (
        "select last_error from duly.notifications where delivery_status = 'failed' and channel = 'in_app'"
    )
    assert "subject: " in str(sql.execute(broken).fetchone())


async def test_channels_that_orgs_invent_share_one_metric_label(app: Duly, org: uuid.UUID) -> None:
    recipient = "acme_customer_7:x"
    await app.notifications.preferences.set(org, recipient, wanted=False, actor=ANNA)
    await app.notifications.send(org, "job.failed", FACTS, to=recipient, actor=ANNA)
    await dispatch(new_dispatcher(app))
    counted = {
        sample.labels["channel"]
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if "channel" in sample.labels
    }
    assert "other" in counted
    assert "acme_customer_7" not in counted


async def test_a_recipient_is_suppressed_however_long_the_text_of_the_bounce(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    app.notifications.add_channel("sms", RecordingChannel(Bounced("no such number " * 100)))
    await app.notifications.send(org, "job.failed", FACTS, to=["sms:x"], actor=ANNA)
    await deliver(app, sql)
    [bounced] = (await app.notifications.suppressions.list(org)).suppressions
    assert bounced.recipient == "x"
    assert bounced.reason.startswith("bounced: no such number")
