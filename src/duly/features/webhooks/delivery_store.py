"""Messages to endpoints: written down by the relay, held while they are sent, settled.

Of the messages about one job to one endpoint, the next is there to be taken; the others follow it, and each
is let go by whoever ends the one before it. So they go out in order, and a claim never meets what cannot go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from duly.db.pool import Connection
from duly.db.rows import PREFER_INDEX_ORDER, rows
from duly.db.statements import statement
from duly.features.events.models import RelayedEvent

BREAKS = 5
"""Failures in a row after which an endpoint is shut."""
_SHUT, _SHUT_MOST = timedelta(seconds=30), timedelta(hours=1)
_LOGGED = 20
_WALK = 200


class Key(NamedTuple):
    """A message, by the endpoint it goes to and the event it tells of."""

    org_id: UUID
    endpoint_id: UUID
    job_id: UUID
    event_seq: int


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that is ours to send, for as long as it is held."""

    key: Key
    event_type: str
    data: dict[str, Any] | None
    """What it says if it is about no job."""
    tries: int
    """How many it has behind it."""
    on_trial: bool
    """Whether its endpoint was shut, and is heard again if this one arrives."""
    failing: bool = False
    """Whether the last that went there did not arrive."""


class Walk(NamedTuple):
    """What was taken, and from where the next walk goes on; None if this one came to the end."""

    claimed: list[Claimed]
    end: tuple[UUID, UUID] | None


@dataclass(frozen=True, slots=True)
class Told:
    """What a message says, and to whom. The event is None if it is no longer kept."""

    url: str = field(repr=False)
    secrets: list[str] = field(repr=False)
    event: dict[str, Any] | None


class Tried(NamedTuple):
    """What became of a try: over, or to be tried again after a while."""

    claimed: Claimed
    status: Literal["delivered", "failed", "pending"]
    wait: timedelta | None
    entry: dict[str, Any]
    """For the log of the message."""
    gone: bool = False
    """Whether the receiver wants no more of them."""
    asked: bool = True
    """Whether the receiver had anything to do with it."""


class Judged(NamedTuple):
    """What tries said about an endpoint."""

    org_id: UUID
    endpoint_id: UUID
    gone: bool
    shut: bool
    """Whether it was shut just now."""
    given_up: bool
    """Whether it has failed for too long, or is gone."""


async def create(conn: Connection, found: Sequence[RelayedEvent]) -> int:
    """Write down what endpoints are to be told of these events, on the relay's session; how many messages."""
    values = {
        "org_ids": [one.org_id for one in found],
        "job_ids": [one.job_id for one in found],
        "seqs": [one.event_seq for one in found],
        "event_types": [one.event_type for one in found],
        "job_types": [one.job_type for one in found],
        "xids": [str(one.commit_xid) for one in found],
    }
    return (await conn.execute(statement("deliveries/write"), values)).rowcount


async def expected(conn: Connection) -> bool:
    """Whether there is an endpoint at all: cheaper to ask than what is due."""
    return await (await conn.execute(statement("deliveries/expected"))).fetchone() == (True,)


async def claim(
    conn: Connection,
    holder: UUID,
    after: tuple[UUID, UUID] | None,
    flying: Mapping[tuple[UUID, UUID], int],
    *,
    free: int,
    each: int,
    each_org: int,
    lease: timedelta,
    failing: int | None = None,
) -> Walk:
    """Hold up to `free` messages that are due; with those that fly, `each` of an endpoint at most.

    Of endpoints that fail, one message each, and of no more than `failing` of them.
    """
    after_org, after_endpoint = after or (UUID(int=0), UUID(int=0))
    values = {
        "after_org": after_org,
        "after_endpoint": after_endpoint,
        "org_ids": [org_id for org_id, _ in flying],
        "endpoint_ids": [endpoint_id for _, endpoint_id in flying],
        "flying": list(flying.values()),
        "holder": holder,
        "free": free,
        "failing": free if failing is None else failing,
        "each": each,
        "each_org": each_org,
        "lease": lease,
        "breaks": BREAKS,
        "walk": _WALK,
    }
    await conn.execute(PREFER_INDEX_ORDER)
    found = await rows(conn, "deliveries/claim", values)
    claimed = [_claimed(row) for row in found if row["org_id"] is not None]
    if len(claimed) == free:
        return Walk(claimed, claimed[-1].key[:2])
    last = found[0]
    return Walk(claimed, (last["walked_org"], last["walked_endpoint"]) if last["walked"] == _WALK else None)


def _claimed(row: Mapping[str, Any]) -> Claimed:
    key = Key(*(row[name] for name in Key._fields))
    return Claimed(key, row["event_type"], row["data"], row["tries"], row["on_trial"], row["failing"])


async def read(conn: Connection, keys: Sequence[Key]) -> dict[Key, Told]:
    """What these messages say; none of an endpoint that was removed."""
    found = await rows(conn, "deliveries/read", _columns(keys))
    return {keys[row["place"] - 1]: _told(row) for row in found}


def _told(row: Mapping[str, Any]) -> Told:
    return Told(row["url"], row["secrets"], None if row["event_seq"] is None else dict(row))


async def settle(conn: Connection, holder: UUID, tried: Iterable[Tried]) -> set[Key]:
    """Note what became of tries, and let those go that waited; which of the messages were still ours."""
    document = json.dumps([_row(one) for one in tried])
    done = await rows(conn, "deliveries/settle", {"tries": document, "holder": holder, "kept": _LOGGED})
    if over := [_key(row) for row in done if row["status"] != "pending"]:
        await conn.execute(statement("deliveries/let_go"), _columns(over))
    if carriers := [row for row in done if row["notification_id"] is not None]:
        names = ("org_id", "notification_id", "status", "tries", "error")
        columns = ("org_ids", "notification_ids", "statuses", "tries", "errors")
        said = {column: [row[name] for row in carriers] for column, name in zip(columns, names, strict=True)}
        await conn.execute(statement("deliveries/tell_notifications"), said)
    return {_key(row) for row in done}


async def judge(conn: Connection, tried: Iterable[Tried], patience: timedelta) -> list[Judged]:
    """Let endpoints have what the tries say about them: shut, or whole again."""
    told: dict[tuple[UUID, UUID], dict[str, Any]] = {}
    for one in (one for one in tried if one.asked):
        said = told.setdefault(
            one.claimed.key[:2], {"succeeded": False, "failed": 0, "trial_failed": False, "gone": False}
        )
        arrived = one.status == "delivered"
        said["succeeded"] |= arrived
        said["failed"] += not arrived
        said["trial_failed"] |= one.claimed.on_trial and not arrived
        said["gone"] |= one.gone
    document = [{"org_id": str(org), "endpoint_id": str(at), **said} for (org, at), said in told.items()]
    values = {
        "endpoints": json.dumps(document),
        "breaks": BREAKS,
        "shut": _SHUT,
        "shut_most": _SHUT_MOST,
        "patience": patience,
    }
    return [Judged(**row) for row in await rows(conn, "deliveries/judge", values)]


async def release(conn: Connection, holder: UUID, keys: Sequence[Key]) -> None:
    """Give back what is not sent any more."""
    await conn.execute(statement("deliveries/release"), {**_columns(keys), "holder": holder})


def _row(one: Tried) -> dict[str, Any]:
    key = {
        name: value if isinstance(value, int) else str(value)
        for name, value in one.claimed.key._asdict().items()
    }
    wait = None if one.wait is None else one.wait.total_seconds()
    return {**key, "status": one.status, "wait": wait, "entry": one.entry}


def _key(row: Mapping[str, Any]) -> Key:
    return Key(*(row[name] for name in Key._fields))


def _columns(keys: Sequence[Key]) -> dict[str, list[Any]]:
    names = ("org_ids", "endpoint_ids", "job_ids", "seqs")
    return {name: [key[place] for key in keys] for place, name in enumerate(names)}
