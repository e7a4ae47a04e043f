"""Subscriptions: subscribers are notified once when a job ends, and no other recipient is."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Actor, Cancel, Duly, Fail, Handle, Job
from duly.core.errors import Conflict, ContractError, DulyError, NotFound, UnknownJob
from duly.features.subscriptions import service
from duly.features.webhooks import delivery_store as deliveries
from duly.features.webhooks.models import AttemptResult
from duly.maintenance import retention
from tests.db.open_transactions import wait_for_transactions
from tests.features.events.relaying import relay_all
from tests.features.notifications.delivering import ANNA, RecordingChannel, deliver, dispatch, new_dispatcher
from tests.worker.working import ONE_ATTEMPT, WAIT_TIMEOUT, working

BEN = Actor.user("ben")
ENDPOINT = """
    insert into duly.webhook_endpoints (org_id, endpoint_id, url, event_types, created_by)
    values (%s, %s, 'https://example.com', '{job.completed}', 'u')
"""


def declare(app: Duly) -> Job[..., Any]:
    @app.job("report.build", retry=ONE_ATTEMPT)
    async def build(how: str, number: int = 0) -> int:
        match how:
            case "fail":
                raise Fail("no", code="report.empty")
            case "die":
                raise ValueError("no")
            case "cancel":
                raise Cancel("no")
        return 1

    return build


async def end(app: Duly, *handles: Handle[Any]) -> None:
    """Run a worker until these jobs have ended."""
    async with working(app):
        for handle in handles:
            await handle.wait(WAIT_TIMEOUT)


def notified(sql: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    """Return the recipients and templates of all notifications."""
    query = "select recipient, template_key from duly.notifications order by 1, 2"
    return sql.execute(query).fetchall()  # type: ignore[return-value]


async def test_every_subscriber_is_notified_of_the_selected_outcomes_once(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)
    before = await build.enqueue("work", 1)
    await end(app, before)
    # A subscription starts at the oldest open transaction of the server, also of other tests.
    wait_for_transactions(sql)
    handles = {how: await build.enqueue(how) for how in ("work", "fail", "die", "cancel")}
    subscribe = app.subscriptions.subscribe
    await subscribe(acting, "in_app:all", actor=ANNA)
    await subscribe(
        acting, "in_app:type_ends_well", job_type="report.build", outcomes=["completed"], actor=ANNA
    )
    await subscribe(acting, "in_app:other_type", job_type="report.send", actor=ANNA)
    await subscribe(acting, "in_app:fails", outcomes=["failed"], actor=ANNA)
    await subscribe(acting, "in_app:dies", outcomes=["dead"], actor=ANNA)
    await subscribe(
        acting, "in_app:one_dies", job_id=handles["die"].job_id, outcomes=["failed", "dead"], actor=ANNA
    )
    await subscribe(
        acting, "in_app:one_wrong", job_id=handles["die"].job_id, outcomes=["completed"], actor=ANNA
    )
    stranger = uuid.uuid4()
    await app.create_org(stranger, "Stranger")
    await subscribe(stranger, "in_app:stranger", actor=ANNA)
    await end(app, *handles.values())
    await relay_all(app, sql)
    expected = [
        *(("all", f"job.{how}") for how in ("canceled", "completed", "dead", "failed")),
        ("dies", "job.dead"),
        ("fails", "job.dead"),
        ("fails", "job.failed"),
        ("one_dies", "job.dead"),
        ("type_ends_well", "job.completed"),
    ]
    assert notified(sql) == expected
    sql.execute("update duly.relay_mark set commit_xid = '3', event_seq = 0")
    await relay_all(app, sql)
    assert notified(sql) == expected  # not of jobs that ended before, and not twice
    assert str(before.job_id) not in str(sql.execute("select payload from duly.notifications").fetchall())
    facts = sql.execute(
        "select job_id, payload from duly.notifications where recipient = 'one_dies'"
    ).fetchone()
    assert facts is not None
    died = await handles["die"].status()
    assert facts[0] == died.job_id
    assert facts[1] == {
        "job_id": str(died.job_id),
        "job_type": "report.build",
        "subject_id": None,
        "status": "failed",
        "outcome": "dead",
        "error_code": died.error_code,
        "finished_at": died.finished_at and f"{died.finished_at:%Y-%m-%dT%H:%M:%S.%fZ}",
    }
    listed = (await app.subscriptions.list(acting)).subscriptions
    assert {one.recipient for one in listed if one.told_at is None} == {"other_type", "one_wrong"}


async def test_a_subscriber_to_an_ended_job_is_notified_at_once_and_never_twice(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)
    handle = await build.enqueue("work")
    await end(app, handle)
    for _ in range(2):
        await app.subscriptions.subscribe(acting, "in_app:late", job_id=handle.job_id, actor=ANNA)
    await app.subscriptions.subscribe(
        acting, "in_app:wrong", job_id=handle.job_id, outcomes="failed", actor=ANNA
    )
    assert notified(sql) == [("late", "job.completed")]
    sql.execute("update duly.subscriptions set since_xid = '3'")
    sql.execute("update duly.relay_mark set commit_xid = '3', event_seq = 0")
    await relay_all(app, sql)
    assert notified(sql) == [("late", "job.completed")]


async def test_a_message_links_to_its_job_if_the_public_url_is_set(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)
    handle = await build.options(subject_id="Invoice 7").enqueue("work")
    await app.subscriptions.subscribe(acting, "sms:1", job_id=handle.job_id, locale="de", actor=ANNA)
    app.notifications.public_url = "https://duly.example.com"
    app.notifications.add_channel("sms", channel := RecordingChannel())
    await end(app, handle)
    await relay_all(app, sql)
    await deliver(app, sql)
    [message] = channel.messages
    assert message.body.endswith(f"\nhttps://duly.example.com/jobs/{handle.job_id}\n")
    assert "Betreff: Invoice 7\n" in message.body
    assert (message.job_id, message.locale) == (handle.job_id, "de")


async def test_system_jobs_have_no_subscribers(app: Duly, acting: uuid.UUID, sql: psycopg.Connection) -> None:
    app.notifications.add_channel("sms", RecordingChannel())
    await app.subscriptions.subscribe(acting, "sms:1", actor=ANNA)
    await app.notifications.send(acting, "job.failed", {}, to="sms:2", actor=ANNA)
    await deliver(app, sql)
    await relay_all(app, sql)
    assert notified(sql) == [("2", "job.failed")]
    with pytest.raises(ContractError, match=r"duly\.notify is a system job of Duly"):
        await app.subscriptions.subscribe(acting, "sms:1", job_type="duly.notify", actor=ANNA)


async def test_subscriptions_are_created_once_listed_and_deleted(
    app: Duly, acting: uuid.UUID, monkeypatch: pytest.MonkeyPatch, sql: psycopg.Connection
) -> None:
    handle = await declare(app).enqueue("work")
    own = app.subscriptions
    mine = await own.subscribe(acting, "email:Anna@Example.com", job_id=handle.job_id, actor=ANNA)
    same = await own.subscribe(acting, "email:anna@example.com", job_id=str(handle.job_id), actor=ANNA)
    bens = await own.subscribe(acting, "in_app:anna", outcomes=["dead", "failed"], actor=BEN)
    other = await own.subscribe(acting, "in_app:ben", outcomes=["failed"], actor=BEN)
    assert (mine, bens.outcomes) == (same, ("failed", "dead"))
    page = await own.list(acting, limit=2)
    rest = await own.list(acting, limit=2, after=page.after)
    assert [*page.subscriptions, *rest.subscriptions] == [other, bens, mine]
    assert [*(await own.list(acting, of=ANNA)).subscriptions] == [bens, mine]
    assert [*(await own.list(acting, job_id=handle.job_id)).subscriptions] == [mine]
    assert await own.unsubscribe(acting, mine.subscription_id) == mine
    stranger = uuid.uuid4()
    await app.create_org(stranger, "Stranger")
    for owner, subscription in ((acting, mine), (stranger, bens)):
        for refused in (own.get, own.unsubscribe):
            with pytest.raises(NotFound):
                await refused(owner, subscription.subscription_id)
    with pytest.raises(UnknownJob):
        await own.subscribe(stranger, "in_app:u", job_id=handle.job_id, actor=ANNA)
    for wrong in ({"outcomes": []}, {"outcomes": ["lost"]}, {"job_id": handle.job_id, "job_type": "a"}):
        with pytest.raises(DulyError):
            await own.subscribe(acting, "in_app:u", actor=ANNA, **wrong)
    with pytest.raises(NotFound):
        await own.subscribe(acting, f"webhook:{uuid.uuid4()}", actor=ANNA)
    monkeypatch.setattr(service, "MAX_PER_CREATOR", 2)
    with pytest.raises(Conflict, match="you have created 2 subscriptions"):
        await own.subscribe(acting, "in_app:u", actor=BEN)
    await own.subscribe(acting, "in_app:u", actor=ANNA)
    monkeypatch.setattr(service, "MAX_WITHOUT_JOB", 3)
    with pytest.raises(Conflict, match="3 subscriptions exist"):
        await own.subscribe(acting, "in_app:v", actor=ANNA)


async def test_an_endpoint_is_notified_by_a_delivery_of_its_own(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    endpoint, gone = uuid.uuid4(), uuid.uuid4()
    for which in (endpoint, gone):
        sql.execute(ENDPOINT, [acting, which])
        await app.notifications.send(
            acting, "job.failed", {"job_type": "a"}, to=f"webhook:{which}", actor=ANNA
        )
    sql.execute("delete from duly.webhook_endpoints where endpoint_id = %s", [gone])
    await dispatch(new_dispatcher(app))
    await dispatch(new_dispatcher(app))
    rows = sql.execute(
        "select recipient, delivery_status, last_error, notification_id from duly.notifications"
    )
    found = {uuid.UUID(row[0]): row[1:] for row in rows.fetchall()}
    assert found[gone][:2] == ("failed", "the endpoint was removed or disabled")
    assert found[endpoint][:2] == ("pending", None)
    query = (
        "select event_seq, event_type, notification_id, data, due_at <= now() from duly.webhook_deliveries"
    )
    [(seq, kind, which, data, due)] = sql.execute(query).fetchall()
    assert (seq, kind, which, due) == (1, "notification", found[endpoint][2], True)
    assert (data["subject"], data["template_key"], data["payload"]) == (
        "a failed",
        "job.failed",
        {"job_type": "a"},
    )
    async with (await app.resources()).database.engine() as conn:
        holder, lease = uuid.uuid4(), timedelta(seconds=30)
        claim = await deliveries.claim(
            conn, holder, None, {}, limit=1, per_endpoint=1, per_org=1, lease=lease
        )
        result = AttemptResult(claim.deliveries[0], "delivered", None, {"error": None})
        assert await deliveries.settle(conn, holder, [result])
    assert (await app.notifications.show(acting, which)).delivery_status == "sent"


async def test_a_notification_to_a_deleted_endpoint_fails(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    endpoint = uuid.uuid4()
    sql.execute(ENDPOINT, [acting, endpoint])
    [sent] = await app.notifications.send(acting, "job.failed", {}, to=f"webhook:{endpoint}", actor=ANNA)
    await dispatch(new_dispatcher(app))
    sql.execute("delete from duly.webhook_endpoints")
    await dispatch(new_dispatcher(app))
    assert (await app.notifications.show(acting, sent.notification_id)).delivery_status == "failed"


async def test_old_notifications_and_subscriptions_are_deleted(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection
) -> None:
    build = declare(app)
    ended, canceled = await build.enqueue("work"), await build.enqueue("cancel")
    await end(app, ended, canceled)
    later = await build.enqueue("work", 1)
    for job in (ended, canceled, later):
        await app.subscriptions.subscribe(acting, "in_app:u", job_id=job.job_id, actor=ANNA)
    await app.subscriptions.subscribe(acting, "in_app:u", actor=ANNA)
    await app.notifications.send(acting, "job.failed", {}, to="sms:1", actor=ANNA)
    await dispatch(new_dispatcher(app))
    month = timedelta(days=30)
    async with (await app.resources()).database.engine() as conn:
        assert await retention.run_batch(conn, "delete_old_notifications", month) == 0
        assert await retention.run_batch(conn, "delete_old_subscriptions", month) == 0
        await conn.execute("select set_config('duly.now', (now() + interval '31 days')::text, true)")
        assert await retention.run_batch(conn, "delete_old_notifications", month) == 2
        assert await retention.run_batch(conn, "delete_old_subscriptions", month) == 2
    assert [one.job_id for one in (await app.subscriptions.list(acting)).subscriptions] == [
        None,
        later.job_id,
    ]
