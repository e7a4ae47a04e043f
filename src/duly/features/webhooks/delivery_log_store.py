"""The messages to endpoints as people look at them, and send them again."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple
from uuid import UUID

from psycopg.types.json import Jsonb
from pydantic import BaseModel, ConfigDict

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, first, rows
from duly.db.statements import statement
from duly.features.webhooks.store import Endpoint

DeliveryStatus = Literal["pending", "delivered", "failed"]


class Delivery(BaseModel):
    """A message to an endpoint, and what became of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    endpoint_id: UUID
    job_id: UUID
    event_seq: int
    event_type: str
    about_a_job: bool
    notification_id: UUID | None
    status: DeliveryStatus
    tries: int
    """Since it was made, or sent again by hand."""
    try_log: tuple[dict[str, Any], ...]
    """The last tries, each with its time, answer and error."""
    due_at: datetime
    """When it is tried next, or was last due."""
    created_at: datetime
    ended_at: datetime | None

    @property
    def message_id(self) -> str:
        """What it is sent with, the same at every try."""
        return f"{'evt' if self.about_a_job else 'msg'}_{self.job_id.hex}_{self.event_seq}"

    @property
    def about(self) -> UUID | None:
        """The job it is about, if it is about one."""
        return self.job_id if self.about_a_job else None

    @property
    def place(self) -> Place:
        """Where it stands in the log."""
        return Place(self.created_at, self.job_id, self.event_seq)


class Message(NamedTuple):
    """A message among those to an endpoint: the job's event, or an id of its own."""

    job_id: UUID
    event_seq: int


class Place(NamedTuple):
    """Where a message stands in the log: by time, and by its id among those of one moment."""

    created_at: datetime
    job_id: UUID
    event_seq: int


NEWEST = Place(datetime.max.replace(tzinfo=UTC), UUID(int=2**128 - 1), 2**31 - 1)


OLDEST = Place(datetime.min.replace(tzinfo=UTC), UUID(int=0), 0)


class Waiting(NamedTuple):
    """Messages that are to be sent to an endpoint next; those that follow them are not counted."""

    waiting: int
    next_at: datetime | None
    """When the first of them is due, or was."""


class Choice(NamedTuple):
    """Which messages; None means all."""

    status: DeliveryStatus | None = None
    event_type: str | None = None
    job_id: UUID | None = None


EVERYTHING = Choice()


async def floor(conn: Connection, endpoint: Endpoint, before: Place, *, look: int) -> Place | None:
    """Where a look at so many ends, None if there are fewer; the transaction goes on in this order."""
    await conn.execute(PREFER_INDEX_ORDER)
    row = await first(conn, "webhooks/floor", {**endpoint.key, **_named("before", before), "look": look})
    return Place(**row) if row else None


async def list_before(
    conn: Connection, endpoint: Endpoint, choice: Choice, before: Place, *, down_to: Place, limit: int
) -> list[Delivery]:
    """The next messages to an endpoint, the newest first."""
    ends = {**_named("before", before), **_named("floor", down_to)}
    values = {**endpoint.key, **choice._asdict(), **ends, "limit": limit}
    return [Delivery.model_validate(row) for row in await rows(conn, "webhooks/list_deliveries", values)]


async def read(conn: Connection, endpoint: Endpoint, message: Message) -> Delivery | None:
    """One message to an endpoint."""
    row = await first(conn, "webhooks/read_delivery", {**endpoint.key, **message._asdict()})
    return Delivery.model_validate(row) if row else None


async def write_test(conn: Connection, endpoint: Endpoint, event_type: str, data: dict[str, Any]) -> Delivery:
    """A message to a locked endpoint that is about no job."""
    values = {**endpoint.key, "event_type": event_type, "data": Jsonb(data)}
    [row] = await rows(conn, "webhooks/write_test", values)
    return Delivery.model_validate(row)


async def resend(conn: Connection, endpoint: Endpoint, message: Message) -> bool:
    """Have a message sent again; False if it is being sent just now."""
    chosen = await rows(conn, "webhooks/choose", {**endpoint.key, **message._asdict()})
    return await _resend(conn, endpoint, chosen) == 1


async def resend_failed(conn: Connection, endpoint: Endpoint, since: datetime, *, limit: int) -> int:
    """Have messages sent again that have failed for good; how many."""
    values = {**endpoint.key, "since": since, "limit": limit}
    return await _resend(conn, endpoint, await rows(conn, "webhooks/choose_failed", values))


async def waiting(
    conn: Connection, org_id: UUID, endpoint_ids: Sequence[UUID], *, most: int
) -> dict[UUID, Waiting]:
    """What is to be sent next to some endpoints of an org; nothing of those where nothing is."""
    values = {"org_id": org_id, "endpoint_ids": [*endpoint_ids], "most": most}
    return {row.pop("endpoint_id"): Waiting(**row) for row in await rows(conn, "webhooks/waiting", values)}


def _named(name: str, at: Place) -> dict[str, Any]:
    return {f"{name}_at": at.created_at, f"{name}_job": at.job_id, f"{name}_seq": at.event_seq}


async def _resend(conn: Connection, endpoint: Endpoint, chosen: list[dict[str, Any]]) -> int:
    """Those of a job go out in order: each follows the one before it, if that is still to be sent."""
    messages = {(one["job_id"], one["event_seq"]) for one in chosen}
    values = {
        "job_ids": [one["job_id"] for one in chosen],
        "seqs": [one["event_seq"] for one in chosen],
        "follows": [one["waits"] or (one["job_id"], one["before_seq"]) in messages for one in chosen],
    }
    return (await conn.execute(statement("webhooks/resend"), {**endpoint.key, **values})).rowcount
