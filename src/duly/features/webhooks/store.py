"""Endpoints: where orgs want to be told of events, and the secrets that sign what they are told."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from duly.db.pool import Connection
from duly.db.rows import first, rows
from duly.db.statements import statement


class Endpoint(BaseModel):
    """An endpoint as it is now: everything but its secrets."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    endpoint_id: UUID
    url: str = Field(repr=False)  # some receivers have a token in it
    description: str
    event_types: tuple[str, ...]
    job_types: tuple[str, ...] | None
    """None means all."""
    created_by: str
    created_at: datetime
    updated_at: datetime
    disabled_at: datetime | None
    disabled_by: str | None
    disable_reason: str | None
    failures: int
    """Tries that failed, one after the other."""
    failing_since: datetime | None
    shut_until: datetime | None
    """Until when nothing is sent, because too much has failed."""
    old_secret_until: datetime | None
    """Until when a secret that was replaced still signs beside the new one."""

    @property
    def key(self) -> dict[str, Any]:
        """What its row is found by."""
        return {"org_id": self.org_id, "endpoint_id": self.endpoint_id}


async def create(conn: Connection, values: Mapping[str, Any], secret: str) -> Endpoint:
    """Keep a new endpoint and its secret."""
    [made] = await rows(conn, "webhooks/create", values)
    key = {"org_id": values["org_id"], **made}
    await conn.execute(statement("webhooks/add_secret"), {**key, "secret": secret})
    return await _written(conn, key)


async def count(conn: Connection, org_id: UUID) -> int:
    """How many endpoints an org has."""
    [row] = await rows(conn, "webhooks/count", {"org_id": org_id})
    return int(row["endpoints"])


async def list_after(conn: Connection, org_id: UUID, after: UUID, *, limit: int) -> list[Endpoint]:
    """The next endpoints of an org, in the order in which they were made."""
    found = await rows(conn, "webhooks/list", {"org_id": org_id, "after": after, "limit": limit})
    return [Endpoint.model_validate(row) for row in found]


async def read(conn: Connection, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """One endpoint of an org."""
    row = await first(conn, "webhooks/read", {"org_id": org_id, "endpoint_id": endpoint_id})
    return Endpoint.model_validate(row) if row else None


async def lock(conn: Connection, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """One endpoint of an org, held for a change."""
    return await _read_under(conn, "webhooks/lock", org_id, endpoint_id)


async def hold(conn: Connection, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """One endpoint of an org, that is not removed before the end of the transaction."""
    return await _read_under(conn, "webhooks/hold", org_id, endpoint_id)


async def _read_under(conn: Connection, name: str, org_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    # In this order: what is read is what was committed before the lock was ours.
    await conn.execute(statement(name), {"org_id": org_id, "endpoint_id": endpoint_id})
    return await read(conn, org_id, endpoint_id)


async def change(conn: Connection, endpoint: Endpoint, values: Mapping[str, Any]) -> Endpoint:
    """Give a locked endpoint another definition."""
    return await _changed(conn, "webhooks/change", endpoint, values)


async def disable(conn: Connection, endpoint: Endpoint, *, by: str, reason: str | None) -> Endpoint:
    """Send nothing to a locked endpoint any more."""
    return await _changed(conn, "webhooks/disable", endpoint, {"by": by, "reason": reason})


async def enable(conn: Connection, endpoint: Endpoint) -> Endpoint:
    """Send to a locked endpoint again."""
    return await _changed(conn, "webhooks/enable", endpoint, {})


async def remove(conn: Connection, endpoint: Endpoint) -> None:
    """Remove a locked endpoint with its secrets, and what would be sent there next."""
    for name in ("webhooks/remove", "webhooks/forget"):
        await conn.execute(statement(name), endpoint.key)


async def end_secrets(conn: Connection, endpoint: Endpoint, overlap: timedelta) -> int:
    """Let the secrets of a locked endpoint sign no longer than that; how many still do."""
    await conn.execute(statement("webhooks/expire_secrets"), {**endpoint.key, "overlap": overlap})
    [row] = await rows(conn, "webhooks/drop_secrets", endpoint.key)
    return int(row["secrets"])


async def add_secret(conn: Connection, endpoint: Endpoint, secret: str) -> Endpoint:
    """Sign with one more secret."""
    return await _changed(conn, "webhooks/add_secret", endpoint, {"secret": secret})


async def _changed(conn: Connection, name: str, endpoint: Endpoint, values: Mapping[str, Any]) -> Endpoint:
    await conn.execute(statement(name), {**values, **endpoint.key})
    return await _written(conn, endpoint.key)


async def _written(conn: Connection, key: Mapping[str, Any]) -> Endpoint:
    found = await read(conn, key["org_id"], key["endpoint_id"])
    assert found is not None  # it is ours until the end of the transaction
    return found
