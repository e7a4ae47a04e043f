"""What follows from failed attempts: the retry schedule, the circuit breaker, and disabling the endpoint."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from urllib.parse import urlsplit

from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.audit.entries import ChangeRequest
from duly.features.members.service import list_admins
from duly.features.notifications.service import NewNotification, add_notifications
from duly.features.webhooks import store
from duly.features.webhooks.models import (
    AttemptResult,
    ClaimedDelivery,
    Endpoint,
    EndpointHealth,
    HttpResult,
)
from duly.features.webhooks.signed_message import format_time

log = logging.getLogger("duly.webhooks")
_SECOND, _MINUTE, _HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
RETRY_DELAYS = (
    *(5 * _SECOND, 5 * _MINUTE, 30 * _MINUTE, 2 * _HOUR, 5 * _HOUR),
    *(10 * _HOUR, 14 * _HOUR, 20 * _HOUR, 24 * _HOUR),
)
"""The delay after each failed attempt; a delivery that fails once more has failed for good."""
MAX_RETRY_AFTER = _HOUR
"""The longest pause that a receiver can request."""
BREAKER_THRESHOLD = 5
"""Consecutive failures that open the circuit breaker of an endpoint."""
BREAKER_MIN_PAUSE, BREAKER_MAX_PAUSE = 30 * _SECOND, _HOUR
"""How long it stays open; each failed probe doubles the pause."""
_GONE = 410
_MAX_NOTIFIED_ADMINS = 100


def attempt_result(delivery: ClaimedDelivery, sent: HttpResult, at: datetime) -> AttemptResult:
    """Return the consequence of a request: delivered, failed for good, or a retry."""
    entry = {
        "at": format_time(at),
        "status": sent.status,
        "error": sent.error,
        "seconds": round(sent.seconds, 3),
    }
    if sent.error is None:
        return AttemptResult(delivery, "delivered", None, entry)
    gone = sent.status == _GONE
    if gone or delivery.attempts >= len(RETRY_DELAYS):
        return AttemptResult(delivery, "failed", None, entry, gone=gone, counts=sent.counts)
    # Bounded before it becomes a timedelta: a receiver may request more than one can hold.
    pause = timedelta(seconds=min(sent.retry_after or 0, MAX_RETRY_AFTER.total_seconds()))
    retry_in = max(RETRY_DELAYS[delivery.attempts], pause)
    return AttemptResult(delivery, "pending", retry_in, entry, counts=sent.counts)


def undeliverable(delivery: ClaimedDelivery, error: str, at: datetime) -> AttemptResult:
    """Return the result of a message that can never be sent; the endpoint is not the cause."""
    entry = {"at": format_time(at), "status": None, "error": error, "seconds": 0.0}
    return AttemptResult(delivery, "failed", None, entry, counts=False)


def crashed(delivery: ClaimedDelivery, error: BaseException, at: datetime) -> AttemptResult:
    """Return the result of an attempt that raised: it has failed like any other."""
    return attempt_result(delivery, not_sent(f"not sent: {type(error).__name__}"), at)


def not_sent(error: str) -> HttpResult:
    """Return the result of a request that was not made."""
    return HttpResult(None, error, None, 0.0)


async def disable_failing(conn: Connection, health: EndpointHealth, disable_after: timedelta) -> None:
    """Disable an endpoint in the transaction that found it failing; audit it and notify the org's admins."""
    endpoint = await store.lock(conn, health.org_id, health.endpoint_id)
    if endpoint is None or endpoint.disabled_at is not None:
        return
    cause = "the receiver is gone (410)" if health.gone else f"no delivery for {_format(disable_after)}"
    request = ChangeRequest(Actor.system("duly"), cause)
    disabled = await store.disable(conn, endpoint, by=request.by, reason=cause)
    await store.record_change(conn, disabled, "disabled", request, {"failures": disabled.failures})
    await _notify_admins(conn, disabled, request)
    log.warning("disabled webhook %s of org %s: %s", endpoint.endpoint_id, endpoint.org_id, cause)


async def _notify_admins(conn: Connection, endpoint: Endpoint, request: ChangeRequest) -> None:
    payload = {
        "endpoint_id": str(endpoint.endpoint_id),
        # Only the host: the rest of a URL may be as good as a password.
        "url": f"https://{urlsplit(endpoint.url).hostname}",
        "reason": request.reason,
        "disabled_at": endpoint.disabled_at and endpoint.disabled_at.isoformat(),
    }
    admins = await list_admins(conn, endpoint.org_id, limit=_MAX_NOTIFIED_ADMINS)
    await add_notifications(
        conn,
        [
            NewNotification(endpoint.org_id, "in_app", admin, "webhook.disabled", payload, request.by)
            for admin in admins
        ],
    )


def _format(span: timedelta) -> str:
    days = round(span / timedelta(days=1), 1)
    return f"{days:g} day{'s' * (days != 1)}" if days >= 1 else f"{span}"
