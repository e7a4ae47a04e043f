"""The table of deliveries: written by the relay, leased and settled by the deliverer, listed and resent.

Of the deliveries about one job to one endpoint, only the next can be claimed; the others follow it, and each
is released when the one before it ends. So they are sent in order, and a claim meets no blocked delivery.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, read_all, read_first, rows
from duly.db.statements import statement
from duly.features.events.models import RelayedEvent
from duly.features.webhooks.failures import BREAKER_MAX_PAUSE, BREAKER_MIN_PAUSE, BREAKER_THRESHOLD
from duly.features.webhooks.models import (
    AttemptResult,
    Backlog,
    ClaimedDelivery,
    Delivery,
    DeliveryCursor,
    DeliveryFilter,
    DeliveryKey,
    Endpoint,
    EndpointHealth,
    MessageKey,
    OutboundMessage,
)

_MAX_LOG_ENTRIES = 20
_MAX_WALK = 200


class DeliveryClaim(NamedTuple):
    """The claimed deliveries, and the endpoint after which the next claim continues; None at the end."""

    deliveries: list[ClaimedDelivery]
    continue_after: tuple[UUID, UUID] | None


async def create_deliveries(conn: Connection, events: Sequence[RelayedEvent]) -> None:
    """Write the deliveries of events to the endpoints that select them, on the session of the relay."""
    values = {
        "org_ids": [event.org_id for event in events],
        "job_ids": [event.job_id for event in events],
        "seqs": [event.event_seq for event in events],
        "event_types": [event.event_type for event in events],
        "job_types": [event.job_type for event in events],
        "xids": [str(event.commit_xid) for event in events],
    }
    await conn.execute(statement("deliveries/create"), values)


async def has_endpoints(conn: Connection) -> bool:
    """Return whether any endpoint is enabled: cheaper than a claim."""
    return await (await conn.execute(statement("deliveries/has_endpoints"))).fetchone() == (True,)


async def claim(
    conn: Connection,
    holder: UUID,
    after: tuple[UUID, UUID] | None,
    in_flight: Mapping[tuple[UUID, UUID], int],
    *,
    limit: int,
    per_endpoint: int,
    per_org: int,
    lease: timedelta,
    max_failing: int | None = None,
) -> DeliveryClaim:
    """Lease up to `limit` due deliveries; with those in flight, up to `per_endpoint` and `per_org`.

    Of failing endpoints, claim one delivery each, and of `max_failing` of them at most.
    """
    after_org, after_endpoint = after or (UUID(int=0), UUID(int=0))
    values = {
        "after_org": after_org,
        "after_endpoint": after_endpoint,
        "org_ids": [org_id for org_id, _ in in_flight],
        "endpoint_ids": [endpoint_id for _, endpoint_id in in_flight],
        "in_flight": list(in_flight.values()),
        "holder": holder,
        "limit": limit,
        "max_failing": limit if max_failing is None else max_failing,
        "per_endpoint": per_endpoint,
        "per_org": per_org,
        "lease": lease,
        "breaker_threshold": BREAKER_THRESHOLD,
        "max_walk": _MAX_WALK,
    }
    await conn.execute(PREFER_INDEX_ORDER)
    claimed_rows = await rows(conn, "deliveries/claim", values)
    deliveries = [
        ClaimedDelivery(
            key=_key(row),
            event_type=row["event_type"],
            data=row["data"],
            attempts=row["tries"],
            is_probe=row["is_probe"],
            failing=row["failing"],
        )
        for row in claimed_rows
        if row["org_id"] is not None
    ]
    if len(deliveries) == limit:
        return DeliveryClaim(deliveries, deliveries[-1].key[:2])
    last = claimed_rows[0]
    is_cut = last["walked"] == _MAX_WALK
    return DeliveryClaim(deliveries, (last["walked_org"], last["walked_endpoint"]) if is_cut else None)


async def read_messages(conn: Connection, keys: Sequence[DeliveryKey]) -> dict[DeliveryKey, OutboundMessage]:
    """Return the messages of deliveries, without those to deleted endpoints."""
    return {
        keys[row["n"] - 1]: OutboundMessage(
            row["url"], row["secrets"], None if row["event_seq"] is None else row
        )
        for row in await rows(conn, "deliveries/read_messages", _key_columns(keys))
    }


async def settle(conn: Connection, holder: UUID, results: Iterable[AttemptResult]) -> set[DeliveryKey]:
    """Write the results of attempts, and release the deliveries that follow; return those still leased."""
    document = json.dumps([_settle_row(result) for result in results])
    values = {"results": document, "holder": holder, "max_log_entries": _MAX_LOG_ENTRIES}
    settled = await rows(conn, "deliveries/settle", values)
    if ended := [_key(row) for row in settled if row["status"] != "pending"]:
        await conn.execute(statement("deliveries/release_followers"), _key_columns(ended))
    if carriers := [row for row in settled if row["notification_id"] is not None]:
        columns = {
            "org_ids": [row["org_id"] for row in carriers],
            "notification_ids": [row["notification_id"] for row in carriers],
            "statuses": [row["status"] for row in carriers],
            "attempts": [row["tries"] for row in carriers],
            "errors": [row["error"] for row in carriers],
        }
        await conn.execute(statement("deliveries/update_notifications"), columns)
    return {_key(row) for row in settled}


async def update_breakers(
    conn: Connection, results: Iterable[AttemptResult], disable_after: timedelta
) -> list[EndpointHealth]:
    """Open and close the circuit breakers of endpoints after attempts."""
    attempts = [
        {
            "org_id": str(result.delivery.key.org_id),
            "endpoint_id": str(result.delivery.key.endpoint_id),
            "delivered": result.status == "delivered",
            "is_probe": result.delivery.is_probe,
            "gone": result.gone,
        }
        for result in results
        if result.counts
    ]
    values = {
        "attempts": json.dumps(attempts),
        "threshold": BREAKER_THRESHOLD,
        "min_pause": BREAKER_MIN_PAUSE,
        "max_pause": BREAKER_MAX_PAUSE,
        "disable_after": disable_after,
    }
    return [EndpointHealth(**row) for row in await rows(conn, "deliveries/update_breakers", values)]


async def release(conn: Connection, holder: UUID, keys: Sequence[DeliveryKey]) -> None:
    """Release the leases of deliveries that are not sent."""
    await conn.execute(statement("deliveries/release"), {**_key_columns(keys), "holder": holder})


async def list_before(
    conn: Connection,
    endpoint: Endpoint,
    only: DeliveryFilter,
    before: DeliveryCursor,
    *,
    down_to: DeliveryCursor,
    limit: int,
) -> list[Delivery]:
    """Return the next deliveries to an endpoint, newest first."""
    bounds = {**_cursor_values("before", before), **_cursor_values("floor", down_to)}
    values = {**endpoint.key, **only._asdict(), **bounds, "limit": limit}
    return await read_all(conn, Delivery, "deliveries/list", values)


async def find_scan_end(
    conn: Connection, endpoint: Endpoint, before: DeliveryCursor, *, max_scanned: int
) -> DeliveryCursor | None:
    """Return where a scan of so many deliveries ends; None if there are fewer."""
    await conn.execute(PREFER_INDEX_ORDER)
    values = {**endpoint.key, **_cursor_values("before", before), "max_scanned": max_scanned}
    row = await first(conn, "deliveries/find_scan_end", values)
    return DeliveryCursor(**row) if row else None


async def read(conn: Connection, endpoint: Endpoint, message: MessageKey) -> Delivery | None:
    """Return a delivery to an endpoint."""
    return await read_first(conn, Delivery, "deliveries/read", {**endpoint.key, **message._asdict()})


async def create_test(
    conn: Connection, endpoint: Endpoint, event_type: str, data: dict[str, Any]
) -> Delivery:
    """Create a delivery to a locked endpoint that is not about a job."""
    values = {**endpoint.key, "event_type": event_type, "data": Jsonb(data)}
    [created] = await read_all(conn, Delivery, "deliveries/create_test", values)
    return created


async def resend(conn: Connection, endpoint: Endpoint, message: MessageKey) -> bool:
    """Make a delivery pending again; return False if it is being sent now."""
    locked = await rows(conn, "deliveries/lock_for_resend", {**endpoint.key, **message._asdict()})
    return await _resend(conn, endpoint, locked) == 1


async def resend_failed(conn: Connection, endpoint: Endpoint, since: datetime, *, limit: int) -> int:
    """Make failed deliveries pending again; return how many."""
    values = {**endpoint.key, "since": since, "limit": limit}
    return await _resend(conn, endpoint, await rows(conn, "deliveries/lock_failed_for_resend", values))


async def count_pending(
    conn: Connection, org_id: UUID, endpoint_ids: Sequence[UUID], *, limit: int
) -> dict[UUID, Backlog]:
    """Return the backlogs of endpoints of an org, without empty ones."""
    values = {"org_id": org_id, "endpoint_ids": [*endpoint_ids], "limit": limit}
    backlogs = await rows(conn, "deliveries/count_pending", values)
    return {row.pop("endpoint_id"): Backlog(**row) for row in backlogs}


async def _resend(conn: Connection, endpoint: Endpoint, locked: list[dict[str, Any]]) -> int:
    """Resend in order: a delivery follows the previous one of its job if that is pending or resent too."""
    resent = {(row["job_id"], row["event_seq"]) for row in locked}
    values = {
        "job_ids": [row["job_id"] for row in locked],
        "seqs": [row["event_seq"] for row in locked],
        "follows": [
            row["previous_pending"] or (row["job_id"], row["previous_seq"]) in resent for row in locked
        ],
    }
    return (await conn.execute(statement("deliveries/resend"), {**endpoint.key, **values})).rowcount


def _settle_row(result: AttemptResult) -> dict[str, Any]:
    org_id, endpoint_id, job_id, event_seq = result.delivery.key
    return {
        "org_id": str(org_id),
        "endpoint_id": str(endpoint_id),
        "job_id": str(job_id),
        "event_seq": event_seq,
        "status": result.status,
        "retry_in": None if result.retry_in is None else result.retry_in.total_seconds(),
        "entry": result.log_entry,
    }


def _key(row: Mapping[str, Any]) -> DeliveryKey:
    return DeliveryKey(*(row[name] for name in DeliveryKey._fields))


def _key_columns(keys: Sequence[DeliveryKey]) -> dict[str, list[Any]]:
    names = ("org_ids", "endpoint_ids", "job_ids", "seqs")
    return {name: [key[column] for key in keys] for column, name in enumerate(names)}


def _cursor_values(name: str, at: DeliveryCursor) -> dict[str, Any]:
    return {f"{name}_at": at.created_at, f"{name}_job": at.job_id, f"{name}_seq": at.event_seq}
