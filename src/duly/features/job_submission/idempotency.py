"""Idempotency keys: a key that returns with another request is an error."""

from __future__ import annotations

import json
from typing import Any

from duly.core.errors import KeyReused
from duly.core.job import JobSnapshot
from duly.core.payload import canonical_json
from duly.db.pool import Connection
from duly.jobs.application import App
from duly.jobs.job import Call
from duly.jobs.store import read_payload

KEY_FIELD = "Idempotency-Key"
"""The name of the field in errors: that of the header."""


async def check_same(app: App, conn: Connection, first: JobSnapshot, call: Call[Any]) -> None:
    """Raise unless the job of an idempotency key is the one that is requested now."""
    joined = first.run_identity_hash is not None and first.run_identity_hash == call.options.run_identity_hash
    if joined and first.idempotency_key != call.options.idempotency_key:
        return  # found by its run identity: the request joins that run
    payload = canonical_json(await read_payload(app, conn, first))
    requested = (call.job.name, call.options.subject_id, canonical_json(json.loads(call.payload)))
    if (first.job_type, first.subject_id, payload) != requested:
        raise KeyReused(
            "this key was used for another request", field=KEY_FIELD, fix="use each key for one request only"
        )
