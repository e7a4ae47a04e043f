"""The delivery log: what an endpoint was told, what became of it, and sending it again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import get_args
from uuid import UUID

from duly.core.errors import Conflict, ContractError, UnknownDelivery
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import org_uuid, required_text
from duly.features.audit.entries import change_request
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.features.webhooks import delivery_log_store as delivery_log
from duly.features.webhooks import store as endpoints
from duly.features.webhooks.changes import endpoint_key, held, known, note
from duly.features.webhooks.delivery_log_store import (
    EVERYTHING,
    NEWEST,
    OLDEST,
    Choice,
    Delivery,
    DeliveryStatus,
    Message,
    Place,
    Waiting,
)
from duly.features.webhooks.store import Endpoint
from duly.jobs.application import App
from duly.jobs.request_context import as_uuid, checked_text

__all__ = [
    "MOST_RESENT",
    "MOST_WAITING",
    "TEST",
    "Deliveries",
    "Delivery",
    "DeliveryPage",
    "DeliveryStatus",
    "Resent",
    "Waiting",
]

TEST = "webhook.test"
"""The kind of message that only says that messages arrive."""
MOST_RESENT = 1_000
"""Messages that one call sends again."""
MOST_WAITING = 1_000
"""How far messages are counted that are to be sent."""
_LOOK = 5_000
_ID = re.compile(r"(?:evt|msg)_([0-9a-f]{32})_([0-9]{1,10})")


@dataclass(frozen=True, slots=True)
class DeliveryPage:
    """Some messages; `after` asks for those that follow, and is None at the end.

    With a status or a type so many are looked at and no more: a page may then be short, even empty, although
    others follow.
    """

    deliveries: tuple[Delivery, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class Resent:
    """How many messages are sent again, and whether there may be more of them."""

    count: int
    more: bool


class Deliveries:
    """The messages to the endpoints of an application. They are kept as long as events."""

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
        """The messages to an endpoint, the newest first; an unknown endpoint raises."""
        whose, which, size = org_uuid(org_id), endpoint_key(endpoint_id), page_size(limit)
        choice = Choice(_status(status), checked_text("event_type", event_type), as_uuid("job_id", job_id))
        start = decode_cursor(after, _read_place) or NEWEST
        async with self._app.tenant_session(whose) as conn:
            endpoint = known(await endpoints.read(conn, whose, which), which)
            served = choice == EVERYTHING or choice.job_id is not None
            floor = None if served else await delivery_log.floor(conn, endpoint, start, look=_LOOK)
            found = await delivery_log.list_before(
                conn, endpoint, choice, start, down_to=floor or OLDEST, limit=size + 1
            )
        page = tuple(found[:size])
        last = page[-1].place if len(found) > size else floor
        return DeliveryPage(page, _cursor(last) if last else None)

    async def waiting(self, org_id: UUID | str, some: Sequence[Endpoint]) -> dict[UUID, Waiting]:
        """What is to be sent next to some endpoints of an org, counted up to 1000 for each."""
        whose, which = org_uuid(org_id), [one.endpoint_id for one in some]
        async with self._app.tenant_session(whose) as conn:
            found = await delivery_log.waiting(conn, whose, which, most=MOST_WAITING)
        return {one: found.get(one, Waiting(0, None)) for one in which}

    async def get(self, org_id: UUID | str, endpoint_id: UUID | str, message_id: str) -> Delivery:
        """One message to an endpoint, by the id that it is sent with; an unknown one raises."""
        whose, which, message = org_uuid(org_id), endpoint_key(endpoint_id), _message(message_id)
        async with self._app.tenant_session(whose) as conn:
            endpoint = known(await endpoints.read(conn, whose, which), which)
            return _known(await delivery_log.read(conn, endpoint, message), message_id)

    async def test(
        self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str
    ) -> Delivery:
        """Send a message of the kind `webhook.test`, whatever the endpoint wants to be told of."""
        who = change_request(actor, reason)

        async def change(conn: Connection, endpoint: Endpoint) -> Delivery:
            _check_enabled(endpoint)
            data = {"endpoint_id": str(endpoint.endpoint_id)}
            written = await delivery_log.write_test(conn, endpoint, TEST, data)
            await note(conn, endpoint, "tested", who, message_id=written.message_id)
            return written

        return await held(self._app, org_id, endpoint_id, change)

    async def resend(
        self, org_id: UUID | str, endpoint_id: UUID | str, message_id: str, *, actor: Actor, reason: str
    ) -> Delivery:
        """Send a message again at once, whether it arrived or not; it may be tried as often as a new one.

        One that is being sent just now is left alone.
        """
        message, who = _message(message_id), change_request(actor, reason)

        async def change(conn: Connection, endpoint: Endpoint) -> Delivery:
            _known(await delivery_log.read(conn, endpoint, message), message_id)
            _check_enabled(endpoint)
            if await delivery_log.resend(conn, endpoint, message):
                await note(conn, endpoint, "resent", who, message_id=message_id)
            return _known(await delivery_log.read(conn, endpoint, message), message_id)

        return await held(self._app, org_id, endpoint_id, change)

    async def resend_failed(
        self,
        org_id: UUID | str,
        endpoint_id: UUID | str,
        *,
        since: datetime,
        limit: int = MOST_RESENT,
        actor: Actor,
        reason: str,
    ) -> Resent:
        """Send again what was written since then and has failed for good, the oldest first."""
        who = change_request(actor, reason)
        start, most = _moment(since), _count(limit)

        async def change(conn: Connection, endpoint: Endpoint) -> Resent:
            _check_enabled(endpoint)
            count = await delivery_log.resend_failed(conn, endpoint, start, limit=most)
            if count:
                await note(conn, endpoint, "resent", who, count=count, since=start.isoformat())
            return Resent(count, more=count == most)

        return await held(self._app, org_id, endpoint_id, change)


def _check_enabled(endpoint: Endpoint) -> None:
    if endpoint.disabled_at is not None:
        raise Conflict("this webhook is disabled", field="endpoint_id", fix="enable it first")


def _status(status: str | None) -> DeliveryStatus | None:
    if status is not None and status not in get_args(DeliveryStatus):
        known_ones = ", ".join(get_args(DeliveryStatus))
        raise ContractError(f"{status!r} is no status", field="status", fix=f"one of {known_ones}")
    return status  # type: ignore[return-value]


def _moment(since: datetime) -> datetime:
    if since.tzinfo is None:
        raise ContractError("has no zone", field="since", fix="pass a time with its zone")
    return since


def _count(limit: int) -> int:
    if type(limit) is not int or not 1 <= limit <= MOST_RESENT:
        raise ContractError(f"{limit!r} is out of range", field="limit", fix=f"use 1 to {MOST_RESENT}")
    return limit


def _message(message_id: str) -> Message:
    """What a message is found by, from the id it is sent with."""
    parts = _ID.fullmatch(required_text("message_id", message_id))
    if parts is None or not 0 < int(parts[2]) < 2**31:
        raise ContractError("no id of a message", field="message_id", fix="pass it as `webhook-id` had it")
    return Message(UUID(parts[1]), int(parts[2]))


def _known(delivery: Delivery | None, message_id: str) -> Delivery:
    if delivery is None:
        raise UnknownDelivery(
            f"no message {message_id} to this webhook", field="message_id", fix="check the id, or the log"
        )
    return delivery


def _cursor(at: Place) -> str:
    return encode_cursor(at.created_at.isoformat(), at.job_id, at.event_seq)


def _read_place(created_at: str, job_id: str, event_seq: str) -> Place:
    read = Place(datetime.fromisoformat(created_at), UUID(job_id), int(event_seq))
    if read.created_at.tzinfo is None or not 0 < read.event_seq < 2**31:
        raise ValueError("out of range")
    return read._replace(created_at=read.created_at.astimezone(UTC))
