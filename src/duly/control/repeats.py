"""Requests that come again: an old key with a new request is a mistake, not a repetition."""

from __future__ import annotations

import json
from typing import Any

from duly.client.app import App
from duly.client.job import Call
from duly.client.payloads import payload_of
from duly.model.canonical import canonical
from duly.model.errors import KeyReused
from duly.model.job import JobSnapshot
from duly.store.pool import Connection

KEY_FIELD = "Idempotency-Key"
"""What an idempotency key is called where a request has one: as a header."""


async def check_same(app: App, conn: Connection, first: JobSnapshot, call: Call[Any]) -> None:
    """Raise unless the job that an idempotency key found is what is asked for now."""
    joined = first.run_identity_hash is not None and first.run_identity_hash == call.options.run_identity_hash
    if joined and first.idempotency_key != call.options.idempotency_key:
        return  # found by the identity of its run: joining that one is what was asked for
    payload = canonical(await payload_of(app, conn, first))
    asked = (call.job.name, call.options.subject_id, canonical(json.loads(call.payload)))
    if (first.job_type, first.subject_id, payload) != asked:
        raise KeyReused(
            "this key was used for another request",
            field=KEY_FIELD,
            fix="use a key for one request only",
        )
