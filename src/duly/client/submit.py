"""From calls to handles: complete the contract, store what is large, write everything at once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

from duly.client import borrowed
from duly.client.ground import Ground
from duly.client.handle import Handle
from duly.client.job import Call
from duly.client.spans import enqueuing
from duly.model.canonical import canonical
from duly.model.errors import ContractError
from duly.model.job import JobSpec
from duly.store import jobs

if TYPE_CHECKING:
    from duly.client.app import App

R = TypeVar("R")


async def submit(app: App, calls: Sequence[Call[R]], conn: Any) -> list[Handle[R]]:
    """Write the calls: in the caller's transaction if there is one, else in one of our own."""
    if not calls:
        return []
    conn = _one_connection(calls, conn)
    org_id, specs = _contracts(calls)
    ground = await app.ground()
    if ground.traces is None:
        return _handles(app, org_id, await _write(ground, org_id, specs, conn))
    with enqueuing(ground.traces, specs) as span:
        written = span.tell(await _write(ground, org_id, span.specs, conn))
    return _handles(app, org_id, written)


async def _write(ground: Ground, org_id: UUID, specs: list[JobSpec], conn: Any) -> list[jobs.Written]:
    specs = await _without_large_payloads(ground, specs)
    if conn is not None:
        return await borrowed.enqueue(conn, org_id, specs)
    return await ground.outbox.write(org_id, specs)


def submit_sync(app: App, calls: Sequence[Call[R]], conn: Any) -> list[Handle[R]]:
    """The same without async. A given connection is used on the caller's own thread."""
    conn = _one_connection(calls, conn)
    if conn is None:
        return app.portal.run(submit(app, calls, None))
    if not calls:
        return []
    org_id, specs = _contracts(calls)

    async def stored() -> tuple[Ground, list[JobSpec]]:
        ground = await app.ground()
        return ground, await _without_large_payloads(ground, specs)

    ground, specs = app.portal.run(stored())
    if ground.traces is None:
        return _handles(app, org_id, borrowed.enqueue_sync(conn, org_id, specs))
    with enqueuing(ground.traces, specs) as span:
        written = span.tell(borrowed.enqueue_sync(conn, org_id, span.specs))
    return _handles(app, org_id, written)


def _one_connection(calls: Sequence[Call[Any]], conn: Any) -> Any:
    given = [c for c in (conn, *(call.options.conn for call in calls)) if c is not None]
    if any(other is not given[0] for other in given):
        raise ContractError(
            "the calls name several connections", field="conn", fix="enqueue on one at a time"
        )
    return given[0] if given else None


def _contracts(calls: Sequence[Call[Any]]) -> tuple[UUID, list[JobSpec]]:
    specs = [call.spec() for call in calls]
    org_id = specs[0].origin.org_id
    if any(spec.origin.org_id != org_id for spec in specs):
        raise ContractError(
            "the calls are of several orgs", field="org_id", fix="enqueue for one org at a time"
        )
    return org_id, specs


async def _without_large_payloads(ground: Ground, specs: list[JobSpec]) -> list[JobSpec]:
    most = ground.payload_inline_max // 4  # a character has four bytes at most
    return [s if len(s.payload) <= most else await _without_large_payload(ground, s) for s in specs]


async def _without_large_payload(ground: Ground, spec: JobSpec) -> JobSpec:
    stored = await store_payload(ground, spec.origin.org_id, spec.payload)
    return spec if stored.payload_ref is None else replace(spec, **stored._asdict())


class StoredPayload(NamedTuple):
    """A payload as it goes into its row: itself, or the reference of its blob and its hash."""

    payload: str
    payload_ref: str | None = None
    payload_hash: str | None = None


async def store_payload(ground: Ground, org_id: UUID, payload: str) -> StoredPayload:
    """What is large goes to the blobs."""
    encoded = payload.encode()
    if len(encoded) <= ground.payload_inline_max:
        return StoredPayload(payload)
    ref = await ground.blobs.put(org_id, encoded)
    stable = hashlib.sha256(canonical(json.loads(payload)).encode()).hexdigest()
    return StoredPayload("{}", str(ref), stable)


def _handles(app: App, org_id: UUID, written: Sequence[jobs.Written]) -> list[Handle[Any]]:
    return [Handle(app, org_id, w.job_id, created=w.created) for w in written]
