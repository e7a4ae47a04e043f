"""One try, against receivers that behave as badly as they can."""

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

from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.backoff import RETRIES, Answer, judged
from duly.features.webhooks.delivery_store import Claimed, Key
from duly.features.webhooks.guarded_network import Guard
from duly.features.webhooks.message import body, message_id
from duly.features.webhooks.sender import Sender, trusted
from duly.features.webhooks.signing import signed
from tests.features.webhooks.certificates import self_signed
from tests.features.webhooks.receiver import Receiver, receiving
from tests.features.webhooks.stock import SECRET

ALLOW = ("127.0.0.1",)
OTHER = "whsec_" + base64.b64encode(b"another secret of 32 bytes or so").decode()
KEY = Key(uuid.uuid4(), uuid.uuid4(), uuid.UUID("0190b2c1-0000-7000-8000-000000000000"), 7)


async def answer(receiver: Receiver, path: str, limit: float = 10) -> Answer:
    async with Sender(Guard(Places(ALLOW)), limit=limit, connections=2) as sender:
        return await sender.send(receiver.url(path), {"webhook-id": "evt_1"}, b'{"a": 1}')


async def test_what_arrives_is_a_plain_post_and_2xx_means_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with receiving() as receiver, Sender(Guard(Places(ALLOW)), limit=10, connections=2) as sender:
        for path in ("/200?a=b", "/204"):
            found = await sender.send(receiver.url(path), {"webhook-id": "evt_1"}, b'{"a": 1}')
            assert (found.error, found.retry_after) == (None, None)
    assert [(got.path, got.body) for got in receiver.got] == [
        ("/200?a=b", b'{"a": 1}'),
        ("/204", b'{"a": 1}'),
    ]
    assert receiver.connections == 1, "what is left open is used again"
    sent = receiver.got[0].headers
    assert sent["webhook-id"] == "evt_1"
    assert sent["host"] == f"127.0.0.1:{receiver.port}"
    assert not {"cookie", "authorization", "referer"} & set(sent)


async def test_a_redirect_is_refused_and_its_target_never_asked() -> None:
    async with receiving() as receiver:
        found = await answer(receiver, "/redirect")
        assert (found.status, found.error) == (302, "a redirect, which is not followed")
    assert [got.path for got in receiver.got] == ["/redirect"]


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("/500", 500, "answered 500"),
        ("/404", 404, "answered 404"),
        ("/stall", None, "no answer in time"),
        ("/hangup", None, "no connection"),
        ("/headers", None, "no connection"),
        ("/continue", None, "no connection"),
        ("/huge", 200, None),
        ("/drip", 200, None),
    ],
)
async def test_every_bad_answer_ends_in_time(path: str, status: int | None, error: str | None) -> None:
    began = time.monotonic()
    async with receiving() as receiver:
        found = await answer(receiver, path, limit=0.5 if path == "/stall" else 10)
    assert (found.status, bool(found.error)) == (status, bool(error))
    assert (found.error or "").startswith(error or "")
    assert time.monotonic() - began < 5


async def test_a_busy_receiver_is_left_alone_as_long_as_it_says_but_not_for_ever() -> None:
    async with receiving() as receiver:
        busy = await answer(receiver, "/busy")
        beyond = []
        for asked in (
            "9" * 14,
            "9" * 400,
            "Fri, 31 Dec 9999 23:59:59 -1200",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ):
            receiver.retry_after = asked
            beyond.append(await answer(receiver, "/busy"))
    assert (busy.status, busy.retry_after) == (429, 600)
    claimed, now = Claimed(KEY, "job.completed", None, 0, False), datetime.now(UTC)
    assert judged(claimed, busy, now).wait == timedelta(minutes=10)
    assert judged(claimed, busy._replace(retry_after=1), now).wait == RETRIES[0]
    waits = [judged(claimed, one, now).wait for one in beyond]
    hour = timedelta(hours=1)
    assert waits == [hour, hour, RETRIES[0], hour], "also when it names a time that there is not"


def test_a_message_is_tried_ten_times_over_three_days_and_410_ends_it_at_once() -> None:
    failed, now = Answer(500, "answered 500", None, 0.1), datetime.now(UTC)
    tried = [judged(Claimed(KEY, "job.completed", None, n, False), failed, now) for n in range(10)]
    assert [one.status for one in tried] == ["pending"] * 9 + ["failed"]
    assert sum((one.wait or timedelta(0) for one in tried), timedelta(0)) > timedelta(days=3)
    gone = judged(Claimed(KEY, "job.completed", None, 0, False), Answer(410, "answered 410", None, 0.1), now)
    assert (gone.status, gone.gone) == ("failed", True)


def test_signatures_are_those_of_standard_webhooks_also_of_two_secrets_in_rotation() -> None:
    sent = b'{"a": "\xc3\xa4"}'
    headers = signed("evt_1", int(time.time()), sent, [SECRET, OTHER])
    for secret in (SECRET, OTHER):
        assert Webhook(secret).verify(sent, headers) == {"a": "ä"}
    with pytest.raises(WebhookVerificationError):
        Webhook("whsec_" + base64.b64encode(b"x" * 32).decode()).verify(sent, headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(sent + b" ", headers)


def test_a_message_is_a_cloud_event_and_says_nothing_of_payload_or_result() -> None:
    at = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
    facts = {
        "status": "failed", "outcome": "dead", "attempt": 3, "occurred_at": at, "job_type": "step.take",
        "project_id": None, "subject_id": "doc-1", "request_id": "r", "correlation_id": "c", "trace_id": None,
        "result_id": uuid.uuid4(), "error_code": "boom", "partial_count": 0, "secrets": [SECRET], "url": "u",
    }  # fmt: skip
    claimed = Claimed(KEY, "job.failed", None, 0, False)
    said = json.loads(body(claimed, facts, "https://duly.example"))
    data = said.pop("data")
    assert said == {
        "specversion": "1.0", "id": message_id(claimed), "source": "https://duly.example",
        "type": "job.failed", "subject": str(KEY.job_id), "time": "2026-07-01T12:00:00.000000Z",
        "datacontenttype": "application/json",
    }  # fmt: skip
    assert said["id"] == f"evt_{KEY.job_id.hex}_7"
    assert data == {
        "org_id": str(KEY.org_id), "job_id": str(KEY.job_id), "event_seq": 7,
        "occurred_at": "2026-07-01T12:00:00.000000Z", "job_type": "step.take", "project_id": None,
        "subject_id": "doc-1", "status": "failed", "outcome": "dead", "attempt": 3, "error_code": "boom",
        "request_id": "r", "correlation_id": "c", "trace_id": None, "result_id": None,
        "status_url": f"https://duly.example/v1/jobs/{KEY.job_id}", "result_url": None,
    }  # fmt: skip
    other = json.loads(body(Claimed(KEY, "notification", {"subject": "Hi"}, 0, False), None, ""))
    assert (other["source"], other["data"]) == (f"urn:duly:org:{KEY.org_id}", {"subject": "Hi"})
    assert "subject" not in other


async def test_a_certificate_must_be_believed_and_be_the_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown, context = self_signed(tmp_path, "hook.test")

    async def here(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    async def found(host: str) -> Answer:
        trust = trusted.__wrapped__()
        guard = Guard(Places(["127.0.0.0/8"]), here)
        async with Sender(guard, limit=10, connections=1, trust=trust) as sender:
            return await sender.send(receiver.url("/200", host, "https"), {}, b"{}")

    async with receiving(tls=context) as receiver:
        stranger = await found("hook.test")
        assert stranger.status is None
        assert "CERTIFICATE_VERIFY_FAILED" in (stranger.error or "")
        assert receiver.got == []
        monkeypatch.setenv("SSL_CERT_FILE", str(shown))
        assert (await found("hook.test")).error is None
        assert "CERTIFICATE_VERIFY_FAILED" in ((await found("other.test")).error or "")
    assert len(receiver.got) == 1
