"""Write endpoints, jobs and events; read deliveries."""

from __future__ import annotations

import uuid
from typing import Any

import psycopg

from duly import Actor, Duly, context

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"  # of the specification
LOG = (
    "insert into duly.event_log (org_id, job_id, event_seq, event_type, status, attempt, occurred_at, "
    "actor_type, actor_id) values (%s, %s, %s, %s, 'running', 1, duly.now(), 'user', 'u1')"
)


def endpoint(
    sql: psycopg.Connection[Any], org: uuid.UUID, url: str, *kinds: str, job_types: list[str] | None = None
) -> uuid.UUID:
    """Write an endpoint with a secret; return its id."""
    created = sql.execute(
        "insert into duly.webhook_endpoints (org_id, endpoint_id, url, event_types, job_types, created_by) "
        "values (%s, duly.uuid7(), %s, %s, %s, 'user:u1') returning endpoint_id",
        [org, url, list(kinds or ("*",)), job_types],
    ).fetchone()
    assert created
    sql.execute(
        "insert into duly.webhook_secrets (org_id, endpoint_id, secret_id, secret) "
        "values (%s, %s, duly.uuid7(), %s)",
        [org, created[0], SECRET],
    )
    return uuid.UUID(str(created[0]))


async def job(app: Duly, org: uuid.UUID, kind: str = "step.take") -> uuid.UUID:
    """Enqueue a job, which writes its first event; return its id."""
    if kind not in app.registry:

        @app.job(kind)
        async def take(n: str) -> None: ...

    with context(org_id=org, actor=Actor.user("u1"), request_id="req-1", correlation_id="cor-1"):
        return (await app.registry.get(kind).enqueue(str(uuid.uuid4()))).job_id


def happen(sql: psycopg.Connection[Any], org: uuid.UUID, job_id: uuid.UUID, seq: int, kind: str) -> None:
    """Write an event of a job in a transaction of its own."""
    sql.execute(LOG, [org, job_id, seq, kind])


def messages(sql: psycopg.Connection[Any], columns: str = "job_id, event_seq") -> list[Any]:
    """Return all deliveries, pending and ended."""
    query = f"select {columns} from duly.webhook_deliveries order by endpoint_id, job_id, event_seq"
    return sql.execute(query).fetchall()
