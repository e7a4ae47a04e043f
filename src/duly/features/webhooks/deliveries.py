"""The delivery log of an endpoint: list deliveries, send a test, resend."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import TypeVar, get_args
from uuid import UUID

from duly.core.errors import Conflict, ContractError, UnknownDelivery, UnknownWebhook
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.deprecated_names import DeprecatedName
from duly.features.arguments import org_uuid, require, required_text, required_uuid
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.features.webhooks import delivery_store, store
from duly.features.webhooks.delivery_store import create_deliveries
from duly.features.webhooks.models import (
    NEWEST,
    OLDEST,
    Backlog,
    Delivery,
    DeliveryCursor,
    DeliveryFilter,
    DeliveryPage,
    DeliveryStatus,
    Endpoint,
    MessageKey,
    Resent,
)
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = ["MAX_PENDING", "MAX_RESENT", "Deliveries", "create_deliveries"]

T = TypeVar("T")
_Read = Callable[[Connection, UUID, UUID], Awaitable[Endpoint | None]]
_Change = Callable[[Connection, Endpoint], Awaitable[T]]
TEST_EVENT = "webhook.test"
"""The type of test messages."""
MAX_RESENT = 1_000
"""Deliveries that one call resends."""
MAX_PENDING = 1_000
"""The backlog of an endpoint is counted up to here."""
_MAX_SCANNED = 5_000
_MESSAGE_ID = re.compile(r"(?:evt|msg)_([0-9a-f]{32})_([0-9]{1,10})")


class Deliveries:
    """The deliveries to the endpoints of an application. They are retained as long as events."""

    waiting = DeprecatedName("backlogs")

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(
        self,
        org_id: UUID | str,
        endpoint_id: UUID | str,
        *,
        status: DeliveryStatus | None = None,
        event_type: str | None = None,
        job_id: UUID | str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> DeliveryPage:
        """Return the deliveries to an endpoint, newest first; an unknown endpoint raises."""
        org, size = org_uuid(org_id), page_size(limit)
        only = DeliveryFilter(
            _checked_status(status), checked_text("event_type", event_type), as_uuid("job_id", job_id)
        )
        before = decode_cursor(after, _parse_cursor) or NEWEST
        has_index = only == DeliveryFilter() or only.job_id is not None
        async with self._app.tenant_session(org) as conn:
            endpoint = await read_endpoint(conn, org, endpoint_id)
            scan_end = None
            if not has_index:
                scan_end = await delivery_store.find_scan_end(
                    conn, endpoint, before, max_scanned=_MAX_SCANNED
                )
            deliveries = await delivery_store.list_before(
                conn, endpoint, only, before, down_to=scan_end or OLDEST, limit=size + 1
            )
        page = tuple(deliveries[:size])
        last = page[-1].cursor if len(deliveries) > size else scan_end
        return DeliveryPage(page, _format_cursor(last) if last else None)

    async def backlogs(self, org_id: UUID | str, endpoints: Sequence[Endpoint]) -> dict[UUID, Backlog]:
        """Return the pending deliveries of endpoints of an org, counted up to 1,000 for each."""
        org, ids = org_uuid(org_id), [endpoint.endpoint_id for endpoint in endpoints]
        async with self._app.tenant_session(org) as conn:
            backlogs = await delivery_store.count_pending(conn, org, ids, limit=MAX_PENDING)
        return {endpoint_id: backlogs.get(endpoint_id, Backlog(0, None)) for endpoint_id in ids}

    async def get(self, org_id: UUID | str, endpoint_id: UUID | str, message_id: str) -> Delivery:
        """Return a delivery by the id of its message; an unknown one raises."""
        org, message = org_uuid(org_id), _parse_message_id(message_id)
        async with self._app.tenant_session(org) as conn:
            endpoint = await read_endpoint(conn, org, endpoint_id)
            return await _read(conn, endpoint, message, message_id)

    async def test(
        self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str
    ) -> Delivery:
        """Send a `webhook.test` message, whatever event types the endpoint has."""
        request = change_request(actor, reason)

        async def send(conn: Connection, endpoint: Endpoint) -> Delivery:
            _check_enabled(endpoint)
            data = {"endpoint_id": str(endpoint.endpoint_id)}
            created = await delivery_store.create_test(conn, endpoint, TEST_EVENT, data)
            detail = {"message_id": created.message_id}
            await store.record_change(conn, endpoint, "tested", request, detail)
            return created

        return await self._change(org_id, endpoint_id, send)

    async def resend(
        self, org_id: UUID | str, endpoint_id: UUID | str, message_id: str, *, actor: Actor, reason: str
    ) -> Delivery:
        """Resend a message at once, delivered or not, with as many attempts as a new one.

        A message that is being sent now is left alone.
        """
        message, request = _parse_message_id(message_id), change_request(actor, reason)

        async def resend(conn: Connection, endpoint: Endpoint) -> Delivery:
            await _read(conn, endpoint, message, message_id)
            _check_enabled(endpoint)
            if await delivery_store.resend(conn, endpoint, message):
                await store.record_change(conn, endpoint, "resent", request, {"message_id": message_id})
            return await _read(conn, endpoint, message, message_id)

        return await self._change(org_id, endpoint_id, resend)

    async def resend_failed(
        self,
        org_id: UUID | str,
        endpoint_id: UUID | str,
        *,
        since: datetime,
        limit: int = MAX_RESENT,
        actor: Actor,
        reason: str,
    ) -> Resent:
        """Resend the failed deliveries that were created since a time, oldest first."""
        request = change_request(actor, reason)
        if since.tzinfo is None:
            raise ContractError("has no time zone", field="since", fix="pass a time with a time zone")
        if type(limit) is not int or not 1 <= limit <= MAX_RESENT:
            raise ContractError(f"{limit!r} is out of range", field="limit", fix=f"use 1 to {MAX_RESENT}")

        async def resend(conn: Connection, endpoint: Endpoint) -> Resent:
            _check_enabled(endpoint)
            count = await delivery_store.resend_failed(conn, endpoint, since, limit=limit)
            if count:
                detail = {"count": count, "since": since.isoformat()}
                await store.record_change(conn, endpoint, "resent", request, detail)
            return Resent(count, more=count == limit)

        return await self._change(org_id, endpoint_id, resend)

    async def _change(self, org_id: UUID | str, endpoint_id: UUID | str, change: _Change[T]) -> T:
        # Not locked for changes: the deliverer locks deliveries first, and then the endpoint.
        return await change_endpoint(self._app, store.lock_against_deletion, org_id, endpoint_id, change)


async def change_endpoint(
    app: App, lock: _Read, org_id: UUID | str, endpoint_id: UUID | str, change: _Change[T]
) -> T:
    """Change an endpoint or its deliveries under a lock, in one transaction; an unknown id raises."""
    org = org_uuid(org_id)

    async def work(conn: Connection) -> T:
        return await change(conn, await read_endpoint(conn, org, endpoint_id, lock))

    return await audited_transaction(app, work)


async def read_endpoint(
    conn: Connection, org_id: UUID, endpoint_id: UUID | str, read: _Read = store.read
) -> Endpoint:
    """Return an endpoint of an org; one that is unknown or of another org raises the same error."""
    key = required_uuid("endpoint_id", endpoint_id)
    endpoint = await read(conn, org_id, key)
    return require(endpoint, UnknownWebhook, f"webhook {key}", field="endpoint_id")


async def _read(conn: Connection, endpoint: Endpoint, message: MessageKey, message_id: str) -> Delivery:
    delivery = await delivery_store.read(conn, endpoint, message)
    if delivery is None:
        raise UnknownDelivery(
            f"no message {message_id} to this webhook", field="message_id", fix="check message_id"
        )
    return delivery


def _check_enabled(endpoint: Endpoint) -> None:
    if endpoint.disabled_at is not None:
        raise Conflict("this webhook is disabled", field="endpoint_id", fix="enable it first")


def _checked_status(status: DeliveryStatus | None) -> DeliveryStatus | None:
    statuses = get_args(DeliveryStatus)
    if status is not None and status not in statuses:
        raise ContractError(
            f"unknown status {status!r}", field="status", fix=f"use one of {', '.join(statuses)}"
        )
    return status


def _parse_message_id(message_id: str) -> MessageKey:
    parts = _MESSAGE_ID.fullmatch(required_text("message_id", message_id))
    if parts is None or not 0 < int(parts[2]) < 2**31:
        raise ContractError("not the id of a message", field="message_id", fix="pass the `webhook-id` header")
    return MessageKey(UUID(parts[1]), int(parts[2]))


def _format_cursor(at: DeliveryCursor) -> str:
    return encode_cursor(at.created_at.isoformat(), at.job_id, at.event_seq)


def _parse_cursor(created_at: str, job_id: str, event_seq: str) -> DeliveryCursor:
    at = datetime.fromisoformat(created_at)
    cursor = DeliveryCursor(at.astimezone(UTC), UUID(job_id), int(event_seq))
    if at.tzinfo is None or not 0 < cursor.event_seq < 2**31:
        raise ValueError("out of range")
    return cursor
