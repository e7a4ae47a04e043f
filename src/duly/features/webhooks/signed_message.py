"""The message of a delivery: a CloudEvent, signed as Standard Webhooks specifies.

It never contains the payload or the result of a job.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic_core import to_json

from duly.core.errors import ContractError
from duly.features.webhooks.models import ClaimedDelivery, DeliveryKey

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_PREFIX = "whsec_"
_MIN_SECRET_BYTES, _MAX_SECRET_BYTES, _NEW_SECRET_BYTES = 24, 64, 32
_EVENT_FIELDS = (
    *("job_type", "project_id", "subject_id", "status", "outcome", "attempt", "error_code"),
    *("request_id", "correlation_id", "trace_id"),
)


def new_secret() -> str:
    """Return a random signing secret."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(_NEW_SECRET_BYTES)).decode()


def checked_secret(secret: str) -> str:
    """Return a signing secret of the caller; raise if it has not the form of Standard Webhooks.

    The error does not repeat the secret.
    """
    try:
        if not secret.startswith(_PREFIX):
            raise ValueError(_PREFIX)
        size = len(base64.b64decode(secret.removeprefix(_PREFIX), validate=True))
    except (ValueError, AttributeError, binascii.Error):
        size = 0
    if not _MIN_SECRET_BYTES <= size <= _MAX_SECRET_BYTES:
        raise ContractError(
            "not a secret of Standard Webhooks",
            field="secret",
            fix=f"pass {_PREFIX} and the base64 of {_MIN_SECRET_BYTES} to {_MAX_SECRET_BYTES} "
            "random bytes, or nothing",
        ) from None
    return secret


def sign(message_id: str, timestamp: int, body: bytes, signing_secrets: Iterable[str]) -> dict[str, str]:
    """Return the headers of a message: its id, its time, and a signature by each secret."""
    content = f"{message_id}.{timestamp}.".encode() + body
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(_signature(secret, content) for secret in signing_secrets),
    }


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    return "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode()


def build_body(delivery: ClaimedDelivery, event: Mapping[str, Any] | None, public_url: str) -> bytes:
    """Return the CloudEvent of an event as JSON; without an event, of the delivery's own data."""
    key = delivery.key
    envelope = {
        "specversion": "1.0",
        "id": delivery.message_id,
        "type": delivery.event_type,
        "source": public_url or f"urn:duly:org:{key.org_id}",
        "datacontenttype": "application/json",
    }
    if event is None:
        return to_json({**envelope, "time": format_time(_creation_time(key.job_id)), "data": delivery.data})
    subject = {"subject": str(key.job_id), "time": format_time(event["occurred_at"])}
    return to_json({**envelope, **subject, "data": _event_data(key, event, public_url)})


def _event_data(key: DeliveryKey, event: Mapping[str, Any], public_url: str) -> dict[str, Any]:
    """Return the fields of an event, with links if the public URL is known."""
    has_result = event["status"] in ("completed", "partial") or event["partial_count"] > 0
    data = {
        "org_id": key.org_id,
        "job_id": key.job_id,
        "event_seq": key.event_seq,
        "occurred_at": format_time(event["occurred_at"]),
        **{name: event[name] for name in _EVENT_FIELDS},
        "result_id": event["result_id"] if has_result else None,
    }
    if public_url:
        data["status_url"] = f"{public_url}/v1/jobs/{key.job_id}"
        data["result_url"] = f"{public_url}/v1/results/{event['result_id']}" if has_result else None
    return data


def _creation_time(uuid7: UUID) -> datetime:
    return datetime.fromtimestamp((uuid7.int >> 80) / 1000, UTC)


def format_time(at: datetime) -> str:
    """Return a time as messages and the log of attempts contain it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
