"""One attempt, against receivers that behave as badly as they can."""

from __future__ import annotations

import base64
import json
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook
from standardwebhooks.webhooks import WebhookVerificationError

from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.failures import RETRY_DELAYS, attempt_result
from duly.features.webhooks.models import ClaimedDelivery, DeliveryKey, HttpResult
from duly.features.webhooks.network_backend import NetworkGuard
from duly.features.webhooks.sender import Sender, trusted_certificates
from duly.features.webhooks.signed_message import build_body, sign
from tests.features.webhooks.certificates import self_signed
from tests.features.webhooks.receiver import Receiver, receiving
from tests.features.webhooks.sample_events import SECRET

ALLOW = ("127.0.0.1",)
OTHER = "whsec_" + base64.b64encode(b"another secret of 32 bytes or so").decode()
KEY = DeliveryKey(uuid.uuid4(), uuid.uuid4(), uuid.UUID("0190b2c1-0000-7000-8000-000000000000"), 7)


async def send(receiver: Receiver, path: str, timeout: float = 10) -> HttpResult:
    async with Sender(NetworkGuard(AllowedUrls(ALLOW)), timeout=timeout, connections=2) as sender:
        return await sender.send(receiver.url(path), {"webhook-id": "evt_1"}, b'{"a": 1}')


async def test_a_message_is_a_plain_post_and_2xx_means_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with (
        receiving() as receiver,
        Sender(NetworkGuard(AllowedUrls(ALLOW)), timeout=10, connections=2) as sender,
    ):
        for path in ("/200?a=b", "/204"):
            found = await sender.send(receiver.url(path), {"webhook-id": "evt_1"}, b'{"a": 1}')
            assert (found.error, found.retry_after) == (None, None)
    assert [(got.path, got.body) for got in receiver.received] == [
        ("/200?a=b", b'{"a": 1}'),
        ("/204", b'{"a": 1}'),
    ]
    assert receiver.connections == 1, "a connection is reused"
    sent = receiver.received[0].headers
    assert sent["webhook-id"] == "evt_1"
    assert sent["host"] == f"127.0.0.1:{receiver.port}"
    assert not {"cookie", "authorization", "referer"} & set(sent)


async def test_a_redirect_is_not_followed() -> None:
    async with receiving() as receiver:
        found = await send(receiver, "/redirect")
        assert (found.status, found.error) == (302, "HTTP 302: redirects are not followed")
    assert [got.path for got in receiver.received] == ["/redirect"]


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/500", 500, "HTTP 500"),
        ("/404", 404, "HTTP 404"),
        ("/stall", None, "timed out"),
        ("/hangup", None, "connection failed"),
        ("/headers", None, "connection failed"),
        ("/continue", None, "connection failed"),
        ("/huge", 200, None),
        ("/drip", 200, None),
    ],
)
async def test_every_bad_response_ends_in_time(path: str, status: int | None, error: str | None) -> None:
    began = time.monotonic()
    async with receiving() as receiver:
        found = await send(receiver, path, timeout=0.5 if path == "/stall" else 10)
    assert (found.status, bool(found.error)) == (status, bool(error))
    assert (found.error or "").startswith(error or "")
    assert time.monotonic() - began < 5


async def test_a_busy_receiver_gets_the_pause_that_it_requests_up_to_an_hour() -> None:
    async with receiving() as receiver:
        busy = await send(receiver, "/busy")
        beyond = []
        for requested in (
            "9" * 14,
            "9" * 400,
            "Fri, 31 Dec 9999 23:59:59 -1200",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ):
            receiver.retry_after = requested
            beyond.append(await send(receiver, "/busy"))
    assert (busy.status, busy.retry_after) == (429, 600)
    delivery, now = ClaimedDelivery(KEY, "job.completed", None, 0, False), datetime.now(UTC)
    assert attempt_result(delivery, busy, now).retry_in == timedelta(minutes=10)
    assert attempt_result(delivery, busy._replace(retry_after=1), now).retry_in == RETRY_DELAYS[0]
    waits = [attempt_result(delivery, one, now).retry_in for one in beyond]
    hour = timedelta(hours=1)
    assert waits == [hour, hour, RETRY_DELAYS[0], hour], "also for a time that does not exist"


def test_a_message_has_ten_attempts_over_three_days_and_410_ends_it_at_once() -> None:
    failed, now = HttpResult(500, "HTTP 500", None, 0.1), datetime.now(UTC)
    deliveries = [ClaimedDelivery(KEY, "job.completed", None, n, False) for n in range(10)]
    results = [attempt_result(delivery, failed, now) for delivery in deliveries]
    assert [one.status for one in results] == ["pending"] * 9 + ["failed"]
    assert sum((one.retry_in or timedelta(0) for one in results), timedelta(0)) > timedelta(days=3)
    gone = attempt_result(deliveries[0], HttpResult(410, "HTTP 410", None, 0.1), now)
    assert (gone.status, gone.gone) == ("failed", True)


def test_signatures_are_those_of_standard_webhooks_also_of_two_secrets_in_rotation() -> None:
    sent = b'{"a": "\xc3\xa4"}'
    headers = sign("evt_1", int(time.time()), sent, [SECRET, OTHER])
    for secret in (SECRET, OTHER):
        assert Webhook(secret).verify(sent, headers) == {"a": "ä"}
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(b"x" * 32).decode()).verify(sent, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(sent + b" ", headers)


def test_a_message_is_a_cloud_event_without_payload_and_result() -> None:
    at = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
    event = {
        "status": "failed", "outcome": "dead", "attempt": 3, "occurred_at": at, "job_type": "step.take",
        "project_id": None, "subject_id": "doc-1", "request_id": "r", "correlation_id": "c", "trace_id": None,
        "result_id": uuid.uuid4(), "error_code": "boom", "partial_count": 0, "secrets": [SECRET], "url": "u",
    }  # fmt: skip
    delivery = ClaimedDelivery(KEY, "job.failed", None, 0, False)
    message = json.loads(build_body(delivery, event, "https://duly.example"))
    data = message.pop("data")
    assert message == {
        "specversion": "1.0", "id": delivery.message_id, "source": "https://duly.example",
        "type": "job.failed", "subject": str(KEY.job_id), "time": "2026-07-01T12:00:00.000000Z",
        "datacontenttype": "application/json",
    }  # fmt: skip
    assert message["id"] == f"evt_{KEY.job_id.hex}_7"
    assert data == {
        "org_id": str(KEY.org_id), "job_id": str(KEY.job_id), "event_seq": 7,
        "occurred_at": "2026-07-01T12:00:00.000000Z", "job_type": "step.take", "project_id": None,
        "subject_id": "doc-1", "status": "failed", "outcome": "dead", "attempt": 3, "error_code": "boom",
        "request_id": "r", "correlation_id": "c", "trace_id": None, "result_id": None,
        "status_url": f"https://duly.example/v1/jobs/{KEY.job_id}", "result_url": None,
    }  # fmt: skip
    other = json.loads(
        build_body(ClaimedDelivery(KEY, "notification", {"subject": "Hi"}, 0, False), None, "")
    )
    assert (other["source"], other["data"]) == (f"urn:duly:org:{KEY.org_id}", {"subject": "Hi"})
    assert "subject" not in other


async def test_a_certificate_must_be_trusted_and_match_the_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, context = self_signed(tmp_path, "hook.test")

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def send_to(host: str) -> HttpResult:
        trust = trusted_certificates.__wrapped__()
        guard = NetworkGuard(AllowedUrls(["127.0.0.0/8"]), here)
        async with Sender(guard, timeout=10, connections=1, trust=trust) as sender:
            return await sender.send(receiver.url("/200", host, "https"), {}, b"{}")

    async with receiving(tls=context) as receiver:
        untrusted = await send_to("hook.test")
        assert untrusted.status is None
        assert "CERTIFICATE_VERIFY_FAILED" in (untrusted.error or "")
        assert receiver.received == []
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert (await send_to("hook.test")).error is None
        assert "CERTIFICATE_VERIFY_FAILED" in ((await send_to("other.test")).error or "")
    assert len(receiver.received) == 1
