"""Endpoints: create, update, disable, enable, delete, and rotate their secrets."""

from __future__ import annotations

import base64
import json
import uuid
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from duly import Duly, errors
from duly.core import payload
from duly.core.job import SYSTEM_ORG
from duly.core.policy import Retention
from duly.core.redaction import redact
from duly.features.webhooks import delivery_store as deliveries
from duly.features.webhooks.models import DeliveryKey, Endpoint
from duly.features.webhooks.service import MAX_ENDPOINTS, MAX_SECRETS, Webhooks
from duly.maintenance.retention import run_clean_up
from tests.features.schedules.scheduler_clock import NOON, Clock
from tests.features.webhooks.sample_deliveries import HOUR, URL, WHY, audited, state, write

CARRIED = """
    with message as (
        update duly.webhook_deliveries set notification_id = duly.uuid7() where job_id = %s returning *
    )
    insert into duly.notifications (org_id, notification_id, channel, recipient, template_key, locale,
        payload, payload_hash, schedule_bucket, scheduled_at, created_by)
    select org_id, notification_id, 'webhook', endpoint_id, 't', 'en', '{}', 'h', '', now(), 'u1' from message
"""
"""A notification that a delivery carries."""


async def test_an_endpoint_is_created_updated_disabled_enabled_and_deleted_and_each_is_audited(
    webhooks: Webhooks, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    created = await webhooks.create(
        org, URL, ["job.failed", "job.completed"], job_types=["b", "a", "a"], description="chat", **WHY
    )
    now, which = created.endpoint, created.endpoint.endpoint_id
    assert (now.event_types, now.job_types) == (("job.completed", "job.failed"), ("a", "b"))
    assert (now.created_by, now.disabled_at, now.failures) == ("operator:anna", None, 0)
    assert await webhooks.get(org, str(which)) == now
    same = {"url": URL, "event_types": ["job.completed", "job.failed"], "job_types": ["a", "b"]}
    assert await webhooks.change(org, which, **same, **WHY) == now
    changed = await webhooks.change(org, which, job_types=[], description="", **WHY)
    assert (changed.job_types, changed.description, changed.url) == (None, "", URL)
    for _ in range(2):
        off = await webhooks.disable(org, which, **WHY)
        assert (off.disabled_by, off.disable_reason) == ("operator:anna", "because")
    sql.execute("update duly.webhook_endpoints set failures = 9, shut_until = now(), failing_since = now()")
    for _ in range(2):
        on = await webhooks.enable(org, which, **WHY)
        assert (on.disabled_at, on.failures, on.shut_until, on.failing_since) == (None, 0, None, None)
    pending, delivered = write(sql, on, "pending"), write(sql, on, "delivered")
    sql.execute(CARRIED, [pending])
    await webhooks.remove(org, which, **WHY)
    with pytest.raises(errors.UnknownWebhook):
        await webhooks.remove(org, which, **WHY)
    assert (state(sql, pending), len(state(sql, delivered))) == ([], 1)
    assert sql.execute("select count(*) from duly.webhook_secrets").fetchone() == (0,)
    row = sql.execute("select delivery_status, last_error from duly.notifications").fetchone()
    assert row == ("failed", "the webhook was deleted")
    actions = [action.removeprefix("webhook.") for action, _ in audited(sql)]
    assert actions == ["created", "changed", "disabled", "enabled", "removed"]
    assert audited(sql)[1][1] == {
        "host": "hooks.example.com",
        "changed": ["description", "job_types"],
        "event_types": ["job.completed", "job.failed"],
        "job_types": None,
        "description": "",
    }
    assert "T0K3N" not in repr((now, audited(sql))), "a URL may be as good as a password"


async def test_an_org_reads_and_changes_only_its_own_endpoints(
    app: Duly, webhooks: Webhooks, org: uuid.UUID, endpoint: Endpoint, sql: psycopg.Connection
) -> None:
    other, foreign = uuid.uuid4(), endpoint.endpoint_id
    await app.create_org(other, "Other")
    log, job = webhooks.deliveries, write(sql, endpoint, "failed")
    message = f"evt_{job.hex}_1"
    before = sql.execute("select * from duly.webhook_endpoints").fetchall()
    for attempt in (
        webhooks.get(other, foreign),
        webhooks.change(other, foreign, url="https://example.org", **WHY),
        webhooks.disable(other, foreign, **WHY),
        webhooks.enable(other, foreign, **WHY),
        webhooks.remove(other, foreign, **WHY),
        webhooks.rotate_secret(other, foreign, **WHY),
        log.list(other, foreign),
        log.get(other, foreign, message),
        log.test(other, foreign, **WHY),
        log.resend(other, foreign, message, **WHY),
        log.resend_failed(other, foreign, since=NOON, **WHY),
    ):
        with pytest.raises(errors.UnknownWebhook, match=f"no webhook {foreign} in this org"):
            await attempt
    assert sql.execute("select * from duly.webhook_endpoints").fetchall() == before
    assert (await webhooks.list(other)).endpoints == ()
    mine = await webhooks.create(other, URL, ["*"], **WHY)
    with pytest.raises(errors.UnknownDelivery):
        await log.get(other, mine.endpoint.endpoint_id, message)
    assert [one.endpoint_id for one in (await webhooks.list(org)).endpoints] == [foreign]
    with pytest.raises(errors.UnknownOrg):
        await webhooks.list(uuid.uuid4())
    system = await webhooks.create(SYSTEM_ORG, URL, ["*"], **WHY)
    assert (await webhooks.get(SYSTEM_ORG, system.endpoint.endpoint_id)).url == URL


async def test_an_org_has_a_maximum_of_endpoints_and_they_come_in_pages(
    webhooks: Webhooks, org: uuid.UUID
) -> None:
    created = [await webhooks.create(org, URL, ["*"], **WHY) for _ in range(MAX_ENDPOINTS)]
    with pytest.raises(errors.Conflict, match=f"this org has {MAX_ENDPOINTS} endpoints"):
        await webhooks.create(org, URL, ["*"], **WHY)
    first = await webhooks.list(org, limit=15)
    rest = await webhooks.list(org, limit=15, after=first.after)
    ids = [one.endpoint_id for one in (*first.endpoints, *rest.endpoints)]
    assert (ids, rest.after) == ([one.endpoint.endpoint_id for one in created], None)
    await webhooks.remove(org, ids[0], **WHY)
    await webhooks.create(org, URL, ["*"], **WHY)


async def test_invalid_fields_are_named_and_nothing_is_written(
    webhooks: Webhooks, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    good: dict[str, Any] = {"url": URL, "event_types": ["*"], **WHY}
    bytes_23, bytes_65 = (base64.b64encode(bytes(n)).decode() for n in (23, 65))
    for wrong, part in (
        ({"url": "http://example.com"}, "url: plain HTTP is not encrypted"),
        ({"url": "https://u:p@example.com"}, "url: contains a user"),
        ({"url": "https://example.com/#x"}, "url: contains a fragment"),
        ({"url": "https:///x"}, "url: not an HTTP URL"),
        ({"url": "https://127.0.0.1/"}, "url: not a public address"),
        ({"url": "https://[::ffff:169.254.169.254]/"}, "url: not a public address"),
        ({"url": "https://example.com/" + "x" * 2000}, "url: not an HTTP URL"),
        ({"event_types": []}, "event_types: empty (use some of job.queued, "),
        (
            {"event_types": ["job.done"]},
            "event_types: unknown event type 'job.done' (use some of job.queued, ",
        ),
        ({"event_types": "job.*"}, "event_types: not a list"),
        ({"event_types": None}, "event_types: empty"),
        (
            {"job_types": ["duly.notify"]},
            "job_types: duly.notify is a system job of Duly",
        ),
        ({"job_types": ["a\0"]}, "job_types: not a text"),
        ({"job_types": [f"t{n}" for n in range(101)]}, "job_types: 101 are too many"),
        ({"description": "x" * 501}, "description: longer"),
        ({"secret": "whsec_" + bytes_23}, "secret: not a secret of Standard Webhooks"),
        ({"secret": "whsec_" + bytes_65}, "secret: not a secret of Standard Webhooks"),
        ({"secret": "whsec_not-base64!" + "A" * 32}, "secret: not a secret of Standard Webhooks"),
        ({"secret": base64.b64encode(bytes(32)).decode()}, "secret: not a secret of Standard Webhooks"),
        ({"reason": None}, "reason: missing"),
    ):
        with pytest.raises(errors.ContractError) as caught:
            await webhooks.create(org, **{**good, **wrong})
        assert str(caught.value).startswith(part), wrong
        assert str(wrong.get("secret")) not in str(caught.value)
    with pytest.raises(errors.UnknownOrg):
        await webhooks.create(uuid.uuid4(), **good)
    assert sql.execute("select count(*) from duly.webhook_endpoints").fetchone() == (0,)
    assert audited(sql) == []


async def test_a_secret_is_returned_once_and_appears_nowhere_else(
    app: Duly, webhooks: Webhooks, org: uuid.UUID, sql: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    own = "whsec_" + base64.b64encode(b"x" * 24).decode()
    created = await webhooks.create(org, URL, ["*"], **WHY)
    which = created.endpoint.endpoint_id
    assert len(base64.b64decode(created.secret.removeprefix("whsec_"))) == 32
    rotated = await webhooks.rotate_secret(org, which, secret=own, **WHY)
    assert rotated.secret == own
    texts = repr((created, rotated, await webhooks.get(org, which), await webhooks.list(org), audited(sql)))
    for secret in (created.secret, own):
        assert secret.removeprefix("whsec_") not in texts + caplog.text
        assert secret not in redact(f"the secret is {secret}, they say")
        with pytest.raises(errors.SecretInPayload):
            payload.check_payload({"text": f"sign with {secret}"}, 100)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        async with app.tenant_session(org) as conn:
            await conn.execute("select secret from duly.webhook_secrets")


async def test_an_old_secret_signs_beside_the_new_one_until_the_overlap_is_over(
    app: Duly, webhooks: Webhooks, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    clock = Clock(sql, NOON)
    first = await webhooks.create(org, URL, ["*"], **WHY)
    which = first.endpoint.endpoint_id
    sent = await webhooks.deliveries.test(org, which, **WHY)

    async def signing() -> list[str]:
        key = DeliveryKey(org, which, sent.job_id, 1)
        async with (await app.resources()).database.engine() as conn:
            return (await deliveries.read_messages(conn, [key]))[key].secrets

    second = await webhooks.rotate_secret(org, which, overlap=HOUR, **WHY)
    assert await signing() == [second.secret, first.secret]
    assert second.endpoint.old_secret_until == NOON + HOUR
    third = await webhooks.rotate_secret(org, which, **WHY)
    assert third.endpoint.old_secret_until == NOON + timedelta(days=1)
    clock.advance(HOUR)
    assert await signing() == [third.secret, second.secret], "a secret that expires sooner still does"
    resources = await app.resources()
    assert (await run_clean_up(resources.database, resources.blobs, Retention()))["secrets"] == 1
    assert first.secret not in str(sql.execute("select secret from duly.webhook_secrets").fetchall())
    last = await webhooks.rotate_secret(org, which, overlap=timedelta(0), **WHY)
    assert (await signing(), last.endpoint.old_secret_until) == ([last.secret], None)
    assert sql.execute("select secret from duly.webhook_secrets").fetchall() == [(last.secret,)]
    for _ in range(MAX_SECRETS - 1):
        await webhooks.rotate_secret(org, which, **WHY)
    with pytest.raises(errors.Conflict, match="5 secrets sign already"):
        await webhooks.rotate_secret(org, which, **WHY)
    assert len(await signing()) == MAX_SECRETS
    for wrong in (timedelta(days=91), -HOUR):
        with pytest.raises(errors.ContractError, match="overlap"):
            await webhooks.rotate_secret(org, which, overlap=wrong, **WHY)
    assert json.dumps(audited(sql)).count("secret_rotated") == 7
