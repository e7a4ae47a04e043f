"""The table of endpoints: rows, secrets, and the audit entries of their changes."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import read_all, read_first, rows
from duly.db.statements import statement
from duly.features.audit.entries import ChangeRequest, record_entry
from duly.features.webhooks.models import Endpoint


async def create(conn: Connection, values: Mapping[str, Any], secret: str) -> Endpoint:
    """Create an endpoint with its secret."""
    [created] = await rows(conn, "webhooks/create", values)
    key = {"org_id": values["org_id"], **created}
    await conn.execute(statement("webhooks/add_secret"), {**key, "secret": secret})
    return await _read_locked(conn, key)


async def count(conn: Connection, org_id: UUID) -> int:
    """Return the number of endpoints of an org."""
    [row] = await rows(conn, "webhooks/count", {"org_id": org_id})
    return int(row["endpoints"])


async def list_after(conn: Connection, org_id: UUID, after: UUID, *, limit: int) -> list[Endpoint]:
    """Return the next endpoints of an org, oldest first."""
    values = {"org_id": org_id, "after": after, "limit": limit}
    return await read_all(conn, Endpoint, "webhooks/list", values)


async def read(conn: Connection, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """Return an endpoint of an org."""
    key = {"org_id": org_id, "endpoint_id": endpoint_id}
    return await read_first(conn, Endpoint, "webhooks/read", key)


async def lock(conn: Connection, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """Lock an endpoint of an org for a change."""
    return await _lock(conn, "webhooks/lock", org_id, endpoint_id)


async def lock_against_deletion(conn: Connection, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """Lock an endpoint of an org against deletion only."""
    return await _lock(conn, "webhooks/lock_against_deletion", org_id, endpoint_id)


async def _lock(conn: Connection, name: str, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    # Read after the lock is held: the lock may have waited for a change.
    await conn.execute(statement(name), {"org_id": org_id, "endpoint_id": endpoint_id})
    return await read(conn, org_id, endpoint_id)


async def update(conn: Connection, endpoint: Endpoint, values: Mapping[str, Any]) -> Endpoint:
    """Update the URL, the description and the filters of a locked endpoint."""
    return await _change(conn, "webhooks/update", endpoint, values)


async def disable(conn: Connection, endpoint: Endpoint, *, by: str, reason: str | None) -> Endpoint:
    """Disable a locked endpoint."""
    return await _change(conn, "webhooks/disable", endpoint, {"by": by, "reason": reason})


async def enable(conn: Connection, endpoint: Endpoint) -> Endpoint:
    """Enable a locked endpoint, and close its circuit breaker."""
    return await _change(conn, "webhooks/enable", endpoint, {})


async def delete(conn: Connection, endpoint: Endpoint) -> None:
    """Delete a locked endpoint with its secrets and its next deliveries."""
    for name in ("webhooks/delete", "deliveries/delete_pending"):
        await conn.execute(statement(name), endpoint.key)


async def expire_secrets(conn: Connection, endpoint: Endpoint, overlap: timedelta) -> int:
    """Let the secrets of a locked endpoint expire after the overlap; return how many still sign."""
    await conn.execute(statement("webhooks/expire_secrets"), {**endpoint.key, "overlap": overlap})
    [row] = await rows(conn, "webhooks/delete_expired_secrets", endpoint.key)
    return int(row["secrets"])


async def add_secret(conn: Connection, endpoint: Endpoint, secret: str) -> Endpoint:
    """Add a signing secret to a locked endpoint."""
    return await _change(conn, "webhooks/add_secret", endpoint, {"secret": secret})


async def record_change(
    conn: Connection,
    endpoint: Endpoint,
    action: str,
    request: ChangeRequest,
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Write a change of an endpoint to the audit trail of its org."""
    # Only the host: the rest of a URL may be as good as a password.
    values = {"host": urlsplit(endpoint.url).hostname, **(detail or {})}
    target = str(endpoint.endpoint_id)
    await record_entry(conn, request, endpoint.org_id, f"webhook.{action}", target, **values)


async def _change(conn: Connection, name: str, endpoint: Endpoint, values: Mapping[str, Any]) -> Endpoint:
    await conn.execute(statement(name), {**values, **endpoint.key})
    return await _read_locked(conn, endpoint.key)


async def _read_locked(conn: Connection, key: Mapping[str, Any]) -> Endpoint:
    endpoint = await read(conn, key["org_id"], key["endpoint_id"])
    assert endpoint is not None  # locked until the end of the transaction
    return endpoint
