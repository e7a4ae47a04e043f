"""What a message says: a CloudEvent about an event of a job. Never what the job was given or has made."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from pydantic_core import to_json

from duly.features.webhooks.delivery_store import Claimed, Key

CONTENT_TYPE = "application/cloudevents+json; charset=utf-8"
_SAME = (
    *("job_type", "project_id", "subject_id", "status", "outcome", "attempt", "error_code"),
    *("request_id", "correlation_id", "trace_id"),
)


def message_id(claimed: Claimed) -> str:
    """The same for every try of a message: receivers know by it what they have seen."""
    kind = "evt" if claimed.data is None else "msg"
    return f"{kind}_{claimed.key.job_id.hex}_{claimed.key.event_seq}"


def body(claimed: Claimed, event: Mapping[str, Any] | None, public_url: str) -> bytes:
    """The message as JSON. One that is about no job has with it what it says."""
    key = claimed.key
    said = {"specversion": "1.0", "id": message_id(claimed), "type": claimed.event_type}
    said["source"] = public_url or f"urn:duly:org:{key.org_id}"
    said["datacontenttype"] = "application/json"
    if event is None:
        return to_json({**said, "time": instant(_made_at(key.job_id)), "data": claimed.data})
    about = {"subject": str(key.job_id), "time": instant(event["occurred_at"])}
    return to_json({**said, **about, "data": _facts(key, event, public_url)})


def _facts(key: Key, event: Mapping[str, Any], public_url: str) -> dict[str, Any]:
    """The facts of an event, with links where callers can follow them."""
    has_result = event["status"] in ("completed", "partial") or event["partial_count"] > 0
    said = {
        "org_id": key.org_id,
        "job_id": key.job_id,
        "event_seq": key.event_seq,
        "occurred_at": instant(event["occurred_at"]),
        **{name: event[name] for name in _SAME},
        "result_id": event["result_id"] if has_result else None,
    }
    if public_url:
        said["status_url"] = f"{public_url}/v1/jobs/{key.job_id}"
        said["result_url"] = f"{public_url}/v1/results/{event['result_id']}" if has_result else None
    return said


def _made_at(message: UUID) -> datetime:
    """When an id was made: it says so itself."""
    return datetime.fromtimestamp((message.int >> 80) / 1000, UTC)


def instant(at: datetime) -> str:
    """A time as messages and the log of their tries have it."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
