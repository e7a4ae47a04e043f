"""The deliverer: due messages are delivered, in order for each job, and no receiver delays another."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from duly import Duly
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.models import AttemptResult, ClaimedDelivery, OutboundMessage
from duly.features.webhooks.network_backend import NetworkGuard
from duly.features.webhooks.routes import NewWebhook
from duly.features.webhooks.sender import Sender
from tests.features.events.relaying import relay_all
from tests.features.webhooks.delivering import Conn, Make, deliver, make_due
from tests.features.webhooks.receiver import Receiver
from tests.features.webhooks.sample_events import SECRET, endpoint, happen, job, messages


async def test_a_message_has_the_event_and_is_signed_by_every_secret(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    at = endpoint(sql, org, receiver.url())
    sql.execute(
        "insert into duly.webhook_secrets (org_id, endpoint_id, secret_id, secret, expires_at) values "
        "(%(org)s, %(at)s, duly.uuid7(), 'whsec_bmV3ZXIgbmV3ZXIgbmV3ZXIgbmV3ZXI=', now() + interval '1 day'),"
        "(%(org)s, %(at)s, duly.uuid7(), 'whsec_b3ZlciBvdmVyIG92ZXIgb3ZlciBvdmVy', now())",
        {"org": org, "at": at},
    )
    one = await job(app, org)
    chore = make(public_url="https://duly.example")
    await deliver(sql, app, chore)
    [got] = receiver.received
    assert got.headers["content-type"].startswith("application/cloudevents+json")
    assert len(got.headers["webhook-signature"].split()) == 2, "an expired secret does not sign"
    both = (SECRET, "whsec_bmV3ZXIgbmV3ZXIgbmV3ZXIgbmV3ZXI=")
    message, again = [Webhook(secret).verify(got.body, got.headers) for secret in both]
    assert message == again == got.message
    assert message["id"] == got.headers["webhook-id"] == f"evt_{one.hex}_1"
    assert (message["type"], message["subject"], message["data"]["job_type"]) == (
        "job.queued",
        str(one),
        "step.take",
    )
    assert message["data"]["status_url"] == f"https://duly.example/v1/jobs/{one}"
    assert (message["data"]["request_id"], message["data"]["correlation_id"]) == ("req-1", "cor-1")
    [(status, tries, log, held)] = messages(sql, "status, tries, try_log, held_by")
    assert (status, tries, held, log[0]["status"], log[0]["error"]) == ("delivered", 1, None, 200, None)
    assert log[0]["at"].endswith("Z")
    with sql.transaction():
        happen(sql, org, one, 2, "job.retried")
        sql.execute("""update duly.event_log set payload = '{"error_code": "boom"}' where event_seq = 2""")
    await deliver(sql, app, chore)
    assert receiver.received[-1].message["data"]["error_code"] == "boom", (
        "it has not ended, but its event says why"
    )


async def test_a_delivery_follows_until_the_previous_one_is_delivered_or_failed(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    endpoint(sql, org, receiver.url("/hook"))
    receiver.statuses["/hook"] = 500
    one, other = await job(app, org), await job(app, org)
    happen(sql, org, one, 2, "job.started")
    chore = make()
    await deliver(sql, app, chore)
    happen(sql, org, one, 3, "job.completed")
    await deliver(sql, app, chore)
    firsts = {f"evt_{one.hex}_1", f"evt_{other.hex}_1"}
    assert {got.message["id"] for got in receiver.received} == firsts, (
        "each was attempted, and none that follows"
    )
    sql.execute("update duly.webhook_deliveries set tries = 9 where job_id = %s and event_seq = 1", [one])
    make_due(sql)
    await deliver(sql, app, chore)
    receiver.statuses["/hook"] = 200
    make_due(sql)
    await deliver(sql, app, chore)
    own = [got.message["id"] for got in receiver.received if one.hex in got.message["id"]]
    assert own[-2:] == [f"evt_{one.hex}_2", f"evt_{one.hex}_3"]
    assert messages(sql, "event_seq, status") == [
        (1, "failed"), (2, "delivered"), (3, "delivered"), (1, "delivered")
    ]  # fmt: skip


async def test_the_circuit_breaker_opens_then_probes_and_closes_when_a_probe_is_delivered(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    endpoint(sql, org, receiver.url("/hook"))
    receiver.statuses["/hook"] = 503
    for _ in range(12):
        await job(app, org)
    chore = make()
    state = "select failures, extract(epoch from shut_until - now())::float from duly.webhook_endpoints"
    await deliver(sql, app, chore)
    [(failures, shut)] = sql.execute(state).fetchall()
    assert (failures, len(receiver.received)) == (5, 8), "attempts in flight do not count any more"
    assert 20 < shut <= 30
    for doubled in (60, 120):
        make_due(sql)
        await deliver(sql, app, chore)
        [(failures, shut)] = sql.execute(state).fetchall()
        assert doubled - 10 < shut <= doubled
    assert len(receiver.received) == 10, "one each time"
    receiver.statuses["/hook"] = 200
    make_due(sql)
    await deliver(sql, app, chore)
    assert sql.execute(
        "select failures, failing_since, shut_until from duly.webhook_endpoints"
    ).fetchall() == [(0, None, None)]
    assert {status for (status,) in messages(sql, "status")} == {"delivered"}


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "failing for days"])
async def test_a_lost_endpoint_is_disabled_audited_and_its_admins_are_notified(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make, gone: bool
) -> None:
    sql.execute(
        "insert into duly.members (org_id, user_id, role) values (%s, 'eva', 'admin'), (%s, 'tim', 'viewer')",
        [org, org],
    )
    sql.execute(
        "insert into duly.members (org_id, user_id, role) "
        "select %s, 'a' || n, 'viewer' from generate_series(1, 100) n",
        [org],
    )
    at = endpoint(sql, org, receiver.url("/410" if gone else "/500"))
    endpoint(sql, org, receiver.url("/200"))
    await job(app, org)
    chore = make()
    if not gone:
        sql.execute(
            "update duly.webhook_endpoints set failing_since = now() - interval '3 days' "
            "where endpoint_id = %s",
            [at],
        )
    await deliver(sql, app, chore)
    row = sql.execute(
        "select endpoint_id, disabled_by from duly.webhook_endpoints where disabled_at is not null"
    ).fetchall()
    assert row == [(at, "system:duly")]
    audited = "select action, actor_type, target_id from duly.audit_entries where action like 'webhook.%'"
    assert sql.execute(audited).fetchall() == [("webhook.disabled", "system", str(at))]
    notified = sql.execute(
        "select org_id, channel, recipient, template_key, payload ->> 'endpoint_id' from duly.notifications"
    )
    assert notified.fetchall() == [(org, "in_app", "eva", "webhook.disabled", str(at))]
    assert sorted(messages(sql, "status")) == [("delivered",), ("failed",) if gone else ("pending",)]
    before = len(receiver.received)
    make_due(sql)
    await job(app, org)
    await deliver(sql, app, chore)
    assert [got.path for got in receiver.received[before:]] == ["/200"]


async def test_a_delivery_whose_process_died_is_sent_again_under_the_same_id(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    endpoint(sql, org, receiver.url())
    await job(app, org)
    died = make(lease=timedelta(milliseconds=1))
    await relay_all(app, sql)
    await died.once()
    await receiver.until(1)
    chore = make()
    await deliver(sql, app, chore)
    assert len({(got.headers["webhook-id"], got.body) for got in receiver.received}) == 1
    assert len(receiver.received) == 2
    await died.once()
    assert messages(sql, "status, tries") == [("delivered", 1)], "a late result does not count"


async def test_a_resent_delivery_and_a_notification_are_sent_like_any_other(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    at = endpoint(sql, org, receiver.url())
    one = await job(app, org)
    happen(sql, org, one, 2, "job.started")
    chore = make()
    await deliver(sql, app, chore)
    sql.execute(
        "update duly.webhook_deliveries set status = 'pending', ended_at = null, due_at = now(), tries = 0 "
        "where event_seq = 1"
    )
    happen(sql, org, one, 3, "job.completed")
    note = sql.execute(
        "insert into duly.notifications (org_id, notification_id, channel, recipient, template_key, locale, "
        "payload, payload_hash, schedule_bucket, scheduled_at, created_by) values "
        "(%s, duly.uuid7(), 'webhook', %s, 'note', 'en', '{}', 'h', '', now(), 'user:u1') "
        "returning notification_id",
        [org, str(at)],
    ).fetchone()
    assert note
    sql.execute(
        "insert into duly.webhook_deliveries (org_id, endpoint_id, job_id, event_seq, event_type, data, "
        "notification_id, due_at) "
        "values (%s, %s, duly.uuid7(), 1, 'notification', '{\"subject\": \"Hi\"}', %s, now())",
        [org, at, note[0]],
    )
    await deliver(sql, app, chore)
    seqs = [
        got.message["data"]["event_seq"]
        for got in receiver.received
        if got.message.get("subject") == str(one)
    ]
    assert (seqs[:2], sorted(seqs[2:])) == ([1, 2], [1, 3]), "the resent one, and the next"
    assert [got.message["data"] for got in receiver.received if got.message["type"] == "notification"] == [
        {"subject": "Hi"}
    ]
    found = sql.execute("select delivery_status, attempt_count, sent_at is not null from duly.notifications")
    assert found.fetchall() == [("sent", 1, True)]
    sql.execute(
        "update duly.webhook_deliveries set status = 'pending', ended_at = null, due_at = now(), tries = 9 "
        "where notification_id is not null"
    )
    receiver.statuses["/200"] = 500
    await deliver(sql, app, chore)
    assert ("notification", "failed") in messages(sql, "event_type, status")
    assert sql.execute("select delivery_status from duly.notifications").fetchall() == [("sent",)]


async def test_a_delivery_without_secrets_is_retried_and_one_without_its_event_fails(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    at = endpoint(sql, org, receiver.url())
    one, other = await job(app, org), await job(app, org)
    await relay_all(app, sql)
    sql.execute("update duly.job_records set queued_xid = null where job_id = %s", [one])
    sql.execute("update duly.webhook_secrets set expires_at = now() where endpoint_id = %s", [at])
    chore = make()
    await deliver(sql, app, chore)
    assert messages(sql, "job_id, status, try_log -> 0 ->> 'error'") == [
        (one, "failed", "the event is no longer retained"),
        (other, "pending", "the endpoint has no signing secret"),
    ]
    assert sql.execute("select failures from duly.webhook_endpoints").fetchall() == [(1,)]
    assert receiver.connections == 0


async def test_an_attempt_that_crashes_or_cannot_be_written_stops_no_other(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    class CrashingSender(Sender):
        async def deliver(self, delivery: ClaimedDelivery, message: OutboundMessage | None) -> AttemptResult:
            assert message
            if message.url.endswith("/breaks"):
                raise RuntimeError
            result = await super().deliver(delivery, message)
            is_unwritable = message.url.endswith("/500")
            return result._replace(log_entry={"error": "\0"}) if is_unwritable else result

    for path in ("/breaks", "/500", "/200"):
        endpoint(sql, org, receiver.url(path))
    await job(app, org)
    chore = make()
    chore._sender = CrashingSender(NetworkGuard(AllowedUrls(["127.0.0.1"])), timeout=5, connections=4)
    await deliver(sql, app, chore)
    assert sorted(messages(sql, "status, tries, held_by, try_log -> 0 ->> 'error'")) == [
        ("delivered", 1, None, None),
        ("failed", 1, None, "the result could not be written"),
        ("pending", 1, None, "not sent: RuntimeError"),
    ]


def test_secrets_and_urls_are_in_no_repr() -> None:
    message = OutboundMessage("https://hook.test/token", [SECRET], None)
    new = NewWebhook(url=message.url, event_types=["*"], secret=SECRET, reason="why")
    for text in (repr(message), repr(new)):
        assert "token" not in text
        assert SECRET not in text
