"""Changes of one endpoint: under its lock, and audited in the same transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

from duly.core.errors import MissingField, UnknownWebhook
from duly.db.pool import Connection
from duly.features.arguments import org_uuid
from duly.features.audit import entries as audited
from duly.features.audit.entries import ChangeRequest
from duly.features.webhooks import store as endpoints
from duly.features.webhooks.store import Endpoint
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid

T = TypeVar("T")
_Take = Callable[[Connection, UUID, UUID], Awaitable[Endpoint | None]]
_Change = Callable[[Connection, Endpoint], Awaitable[T]]


async def under_lock(app: App, org_id: UUID | str, endpoint_id: UUID | str, change: _Change[T]) -> T:
    """Change an endpoint that nobody else changes meanwhile; an unknown id raises."""
    return await _in_transaction(app, org_id, endpoint_id, endpoints.lock, change)


async def held(app: App, org_id: UUID | str, endpoint_id: UUID | str, change: _Change[T]) -> T:
    """Change messages to an endpoint that is not removed meanwhile; an unknown id raises.

    Without its lock: whoever sends to it takes first the messages, and then the endpoint.
    """
    return await _in_transaction(app, org_id, endpoint_id, endpoints.hold, change)


async def _in_transaction(
    app: App, org_id: UUID | str, endpoint_id: UUID | str, take: _Take, change: _Change[T]
) -> T:
    whose, which = org_uuid(org_id), endpoint_key(endpoint_id)

    async def work(conn: Connection) -> T:
        return await change(conn, known(await take(conn, whose, which), which))

    return await audited.audited_transaction(app, work)


async def note(conn: Connection, endpoint: Endpoint, action: str, who: ChangeRequest, **detail: Any) -> None:
    """Write a change of an endpoint into the audit trail of its org."""
    which = str(endpoint.endpoint_id)
    # Only where it is: the rest of an address may be as good as a password there.
    what = {"host": urlsplit(endpoint.url).hostname, **detail}
    await audited.record_entry(conn, who, endpoint.org_id, f"webhook.{action}", which, **what)


def endpoint_key(endpoint_id: UUID | str) -> UUID:
    """The endpoint's id, also from its text."""
    found = as_uuid("endpoint_id", endpoint_id)
    if found is None:
        raise MissingField("missing", field="endpoint_id", fix="pass the id of the endpoint")
    return found


def known(endpoint: Endpoint | None, endpoint_id: UUID) -> Endpoint:
    """It, if there is one; the same error for an unknown one and for another org's."""
    if endpoint is None:
        raise UnknownWebhook(
            f"no webhook {endpoint_id} in this org", field="endpoint_id", fix="check the id and the org"
        )
    return endpoint
