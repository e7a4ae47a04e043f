"""The deliverer: what is due arrives, in order for each job, and no receiver is a burden to another."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from duly import Duly
from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.attempt import Courier
from duly.features.webhooks.delivery_store import Claimed, Told, Tried
from duly.features.webhooks.guarded_network import Guard
from duly.features.webhooks.routes import NewWebhook
from duly.features.webhooks.sender import Sender
from tests.features.events.relaying import relay_all
from tests.features.webhooks.delivering import Conn, Make, deliver, make_due
from tests.features.webhooks.receiver import Receiver
from tests.features.webhooks.stock import SECRET, endpoint, happen, job, messages


async def test_a_message_says_what_happened_signed_by_every_secret(
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
    [got] = receiver.got
    assert got.headers["content-type"].startswith("application/cloudevents+json")
    assert len(got.headers["webhook-signature"].split()) == 2, "one that has expired signs no longer"
    both = (SECRET, "whsec_bmV3ZXIgbmV3ZXIgbmV3ZXIgbmV3ZXI=")
    said, again = [Webhook(secret).verify(got.body, got.headers) for secret in both]
    assert said == again == got.said
    assert said["id"] == got.headers["webhook-id"] == f"evt_{one.hex}_1"
    assert (said["type"], said["subject"], said["data"]["job_type"]) == ("job.queued", str(one), "step.take")
    assert said["data"]["status_url"] == f"https://duly.example/v1/jobs/{one}"
    assert (said["data"]["request_id"], said["data"]["correlation_id"]) == ("req-1", "cor-1")
    [(status, tries, log, held)] = messages(sql, "status, tries, try_log, held_by")
    assert (status, tries, held, log[0]["status"], log[0]["error"]) == ("delivered", 1, None, 200, None)
    assert log[0]["at"].endswith("Z")
    with sql.transaction():
        happen(sql, org, one, 2, "job.retried")
        sql.execute("""update duly.event_log set payload = '{"error_code": "boom"}' where event_seq = 2""")
    await deliver(sql, app, chore)
    assert receiver.got[-1].said["data"]["error_code"] == "boom", "it has not ended, but its event says why"


async def test_what_follows_waits_until_the_one_before_has_arrived_or_failed_for_good(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    endpoint(sql, org, receiver.url("/hook"))
    receiver.answers["/hook"] = 500
    one, other = await job(app, org), await job(app, org)
    happen(sql, org, one, 2, "job.started")
    chore = make()
    await deliver(sql, app, chore)
    happen(sql, org, one, 3, "job.completed")
    await deliver(sql, app, chore)
    firsts = {f"evt_{one.hex}_1", f"evt_{other.hex}_1"}
    assert {got.said["id"] for got in receiver.got} == firsts, "each was tried, and nothing behind it"
    sql.execute("update duly.webhook_deliveries set tries = 9 where job_id = %s and event_seq = 1", [one])
    make_due(sql)
    await deliver(sql, app, chore)
    receiver.answers["/hook"] = 200
    make_due(sql)
    await deliver(sql, app, chore)
    own = [got.said["id"] for got in receiver.got if one.hex in got.said["id"]]
    assert own[-2:] == [f"evt_{one.hex}_2", f"evt_{one.hex}_3"]
    assert messages(sql, "event_seq, status") == [
        (1, "failed"), (2, "delivered"), (3, "delivered"), (1, "delivered")
    ]  # fmt: skip


async def test_an_endpoint_that_fails_is_shut_then_tried_once_and_whole_when_that_arrives(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    endpoint(sql, org, receiver.url("/hook"))
    receiver.answers["/hook"] = 503
    for _ in range(12):
        await job(app, org)
    chore = make()
    state = "select failures, extract(epoch from shut_until - now())::float from duly.webhook_endpoints"
    await deliver(sql, app, chore)
    [(failures, shut)] = sql.execute(state).fetchall()
    assert (failures, len(receiver.got)) == (5, 8), "those that were under way count no more"
    assert 20 < shut <= 30
    for doubled in (60, 120):
        make_due(sql)
        await deliver(sql, app, chore)
        [(failures, shut)] = sql.execute(state).fetchall()
        assert doubled - 10 < shut <= doubled
    assert len(receiver.got) == 10, "one each time"
    receiver.answers["/hook"] = 200
    make_due(sql)
    await deliver(sql, app, chore)
    assert sql.execute(
        "select failures, failing_since, shut_until from duly.webhook_endpoints"
    ).fetchall() == [(0, None, None)]
    assert {status for (status,) in messages(sql, "status")} == {"delivered"}


@pytest.mark.parametrize("gone", [True, False], ids=["gone", "failing for days"])
async def test_an_endpoint_that_is_lost_is_disabled_audited_and_its_admins_are_told(
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
    told = sql.execute(
        "select org_id, channel, recipient, template_key, payload ->> 'endpoint_id' from duly.notifications"
    )
    assert told.fetchall() == [(org, "in_app", "eva", "webhook.disabled", str(at))]
    assert sorted(messages(sql, "status")) == [("delivered",), ("failed",) if gone else ("pending",)]
    before = len(receiver.got)
    make_due(sql)
    await job(app, org)
    await deliver(sql, app, chore)
    assert [got.path for got in receiver.got[before:]] == ["/200"]


async def test_what_its_holder_never_settled_is_sent_again_under_the_same_id(
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
    assert len({(got.headers["webhook-id"], got.body) for got in receiver.got}) == 1
    assert len(receiver.got) == 2
    await died.once()
    assert messages(sql, "status, tries") == [("delivered", 1)], "who comes too late has nothing to say"


async def test_a_resend_and_a_message_about_no_job_go_out_like_any_other(
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
    said = [got.said["data"]["event_seq"] for got in receiver.got if got.said.get("subject") == str(one)]
    assert (said[:2], sorted(said[2:])) == ([1, 2], [1, 3]), "the one that is sent again, and the next"
    assert [got.said["data"] for got in receiver.got if got.said["type"] == "notification"] == [
        {"subject": "Hi"}
    ]
    found = sql.execute("select delivery_status, attempt_count, sent_at is not null from duly.notifications")
    assert found.fetchall() == [("sent", 1, True)]
    sql.execute(
        "update duly.webhook_deliveries set status = 'pending', ended_at = null, due_at = now(), tries = 9 "
        "where notification_id is not null"
    )
    receiver.answers["/200"] = 500
    await deliver(sql, app, chore)
    assert ("notification", "failed") in messages(sql, "event_type, status")
    assert sql.execute("select delivery_status from duly.notifications").fetchall() == [("sent",)]


async def test_what_cannot_be_signed_waits_and_what_is_not_kept_any_more_has_failed(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    at = endpoint(sql, org, receiver.url())
    one, other = await job(app, org), await job(app, org)
    await relay_all(app, sql)
    sql.execute("delete from duly.event_log where job_id = %s", [one])
    sql.execute("update duly.webhook_secrets set expires_at = now() where endpoint_id = %s", [at])
    chore = make()
    await deliver(sql, app, chore)
    assert messages(sql, "job_id, status, try_log -> 0 ->> 'error'") == [
        (one, "failed", "the event is not kept any more"),
        (other, "pending", "the endpoint has no secret to sign with"),
    ]
    assert sql.execute("select failures from duly.webhook_endpoints").fetchall() == [(1,)]
    assert receiver.connections == 0


async def test_a_try_that_breaks_off_or_cannot_be_written_down_stops_nobody(
    app: Duly, org: uuid.UUID, sql: Conn, receiver: Receiver, make: Make
) -> None:
    class Clumsy(Courier):
        async def deliver(self, claimed: Claimed, told: Told | None) -> Tried:
            assert told
            if told.url.endswith("/breaks"):
                raise RuntimeError
            tried = await super().deliver(claimed, told)
            return tried._replace(entry={"error": "\0"}) if told.url.endswith("/500") else tried

    for path in ("/breaks", "/500", "/200"):
        endpoint(sql, org, receiver.url(path))
    await job(app, org)
    chore = make()
    chore._courier = Clumsy(Sender(Guard(Places(["127.0.0.1"])), limit=5, connections=4), "")
    await deliver(sql, app, chore)
    assert sorted(messages(sql, "status, tries, held_by, try_log -> 0 ->> 'error'")) == [
        ("delivered", 1, None, None),
        ("failed", 1, None, "what became of it could not be written"),
        ("pending", 1, None, "not sent: RuntimeError"),
    ]


def test_secrets_and_addresses_are_in_no_repr() -> None:
    told = Told("https://hook.test/token", [SECRET], None)
    made = NewWebhook(url=told.url, event_types=["*"], secret=SECRET, reason="why")
    for shown in (repr(told), repr(made)):
        assert "token" not in shown
        assert SECRET not in shown
