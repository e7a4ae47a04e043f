"""The pages of notifications and webhooks: delivery logs, and resending."""

from __future__ import annotations

import re
import uuid
from typing import Any

import psycopg
import pytest

from duly import Duly, Fail
from duly.features.webhooks.models import Endpoint
from tests.console.conftest import Person, Post, words
from tests.features.notifications.delivering import ANNA, RecordingChannel, deliver
from tests.features.webhooks.sample_deliveries import URL, WHY, write


@pytest.fixture
async def told(app: Duly, org: uuid.UUID, sql: psycopg.Connection[Any]) -> dict[str, uuid.UUID]:
    """A sent, a failed and a suppressed notification, by name."""
    app.notifications.add_channel("sms", RecordingChannel(Fail("the <b>line</b> is cut", code="sms.cut")))
    await app.notifications.suppressions.add(org, "sms:+49 222", actor=ANNA, reason="has left")
    sent = [
        await app.notifications.send(org, "job.failed", {"job_type": "report.build"}, to=to, actor=ANNA)
        for to in ("in_app:u1", "sms:+49 111", "sms:+49 222")
    ]
    await deliver(app, sql)
    return dict(zip(("fine", "failed", "suppressed"), (one.notification_id for [one] in sent), strict=True))


async def test_the_delivery_log_is_filtered_and_masks_addresses(
    operator: Person, viewer: Person, told: dict[str, uuid.UUID]
) -> None:
    everything = await operator.get("/console/notifications")
    assert re.findall(r'id="notification-([^"]+)"', everything.text) == [
        str(one) for one in reversed(told.values())
    ]
    assert "sms:+***" in everything.text
    assert "+49 111" not in everything.text
    failed = words(await operator.get("/console/notifications?status=failed"))
    assert "job.failed sms:+*** Failed 1" in failed
    assert "the <b>line</b> is cut" in failed
    assert "in_app:u1" not in failed
    assert "No matching notifications." in words(await operator.get("/console/notifications?channel=fax"))
    assert (await operator.get("/console/notifications?status=lost")).status_code == 422
    assert (await viewer.get("/console/notifications")).status_code == 403


async def test_a_failed_notification_is_resent(
    app: Duly, org: uuid.UUID, operator: Person, viewer: Person, told: dict[str, uuid.UUID]
) -> None:
    place = f"/console/notifications/{told['failed']}"
    assert "Resend" in words(await operator.get(place))
    assert "Resend" not in words(await operator.get(f"/console/notifications/{told['fine']}"))
    assert (await Post(viewer)(f"{place}/resend", reason="because")).status_code == 403
    again = await Post(operator)(f"{place}/resend", reason="the line is mended")
    assert (again.status_code, again.headers["location"]) == (303, place)
    said = words(await operator.get(place))
    assert "Notification is being resent." in said
    assert "Pending" in said
    fine = await Post(operator)(f"/console/notifications/{told['fine']}/resend", reason="because")
    assert fine.status_code == 409
    assert "the notification was sent" in words(fine)
    [noted] = (await app.audit.list(org, action="notification")).entries
    assert noted.reason == "the line is mended"
    for unknown in (uuid.uuid4(), "x"):
        assert (await operator.get(f"/console/notifications/{unknown}")).status_code == 404


async def test_admins_list_and_remove_suppressions(
    app: Duly, org: uuid.UUID, operator: Person, admin: Person, told: dict[str, uuid.UUID]
) -> None:
    place = "/console/notifications/suppressions"
    assert (await operator.get(place)).status_code == 403
    assert "Suppressions" not in words(await operator.get("/console/notifications"))
    assert "sms:+49 222 has left" in words(await admin.get(place))
    wrong = await Post(admin)(place, to="nobody", reason="because")
    assert wrong.status_code == 422
    assert 'value="nobody"' in wrong.text
    assert (await Post(admin)(place, to="email:eve@example.com", reason="left")).status_code == 303
    assert "Suppression added." in words(await admin.get(place))
    await Post(admin)(f"{place}/end", to="sms:+49 222", reason="is back")
    left = (await app.notifications.suppressions.list(org)).suppressions
    assert [one.recipient for one in left] == ["eve@example.com"]


@pytest.fixture
async def endpoint(app: Duly, org: uuid.UUID) -> Endpoint:
    return (await app.webhooks.create(org, URL, ["job.*"], description="Chat", **WHY)).endpoint


async def test_an_endpoint_lists_its_messages_and_never_its_full_url(
    app: Duly, org: uuid.UUID, operator: Person, viewer: Person, endpoint: Endpoint, sql: psycopg.Connection
) -> None:
    write(sql, endpoint, "failed", event_type="job.failed")
    job = write(sql, endpoint, "delivered", "pending")
    listed = await operator.get("/console/webhooks")
    assert "Chat https://hooks.example.com/… Enabled job.* 1" in words(listed)
    place = f"/console/webhooks/{endpoint.endpoint_id}"
    shown = await operator.get(place)
    assert [listed.text.count("T0K3N"), shown.text.count("T0K3N")] == [0, 0]
    assert words(shown).count("HTTP 500") == 3
    failed = words(await operator.get(f"{place}?status=failed"))
    assert "job.failed Failed" in failed
    assert "job.completed" not in failed
    assert "No matching messages." in words(await operator.get(f"{place}?event_type=none"))
    one = words(await operator.get(f"{place}/messages/evt_{job.hex}_2"))
    assert f"evt_{job.hex}_2" in one
    assert "HTTP 500" in one
    for unknown in (f"{place}/messages/x", f"{place}/messages/evt_{job.hex}_9", "/console/webhooks/x"):
        assert (await operator.get(unknown)).status_code == 404
    assert (await viewer.get(place)).status_code == 403


async def test_messages_are_resent_and_admins_disable_and_enable_an_endpoint(
    app: Duly, org: uuid.UUID, operator: Person, admin: Person, endpoint: Endpoint, sql: psycopg.Connection
) -> None:
    place, why = f"/console/webhooks/{endpoint.endpoint_id}", {"reason": "because"}
    message = f"evt_{write(sql, endpoint, 'failed').hex}_1"
    again = await Post(operator)(f"{place}/messages/{message}/resend", **why)
    assert again.headers["location"] == f"{place}/messages/{message}"
    assert "Message is being resent." in words(await operator.get(again.headers["location"]))
    write(sql, endpoint, "failed", "failed")
    assert (await Post(operator)(f"{place}/resend-failed", hours="0", **why)).status_code == 422
    assert (await Post(operator)(f"{place}/resend-failed", hours="2", **why)).status_code == 303
    assert "2 messages are being resent." in words(await operator.get(place))
    tested = await Post(operator)(f"{place}/test", **why)
    assert "webhook.test" in words(await operator.get(tested.headers["location"]))
    assert "Disable" not in words(await operator.get(place))
    assert (await Post(operator)(f"{place}/disable", **why)).status_code == 403
    assert (await Post(admin)(f"{place}/disable", reason="too noisy")).status_code == 303
    said = words(await admin.get(place))
    assert re.search(r"Disabled by api_key:\S+: too noisy", said)
    assert "Send test" not in said
    assert (await Post(admin)(f"{place}/test", **why)).status_code == 409
    await Post(admin)(f"{place}/enable", **why)
    assert (await app.webhooks.get(org, endpoint.endpoint_id)).disabled_at is None
