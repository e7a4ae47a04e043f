"""Failure callbacks: a job type handles its failures in the transaction that ends the job.

A callback is recorded as pending with the failure, and deleted with the writes of the callback itself.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from uuid import UUID

import psycopg
from psycopg.pq import TransactionStatus

from duly.core.error_report import describe_error
from duly.core.errors import ConfigurationError, DulyError, StoreError
from duly.core.job import JobSnapshot
from duly.core.reconciliation import ReconciliationSource
from duly.core.states import Outcome
from duly.db.database import retry_transaction
from duly.db.pool import Connection
from duly.db.session_settings import ENGINE_ROLE_SQL, tenant_role_sql
from duly.db.statements import statement
from duly.jobs import store as job_store
from duly.observability.logs import ids_of

if TYPE_CHECKING:
    from duly.jobs.application import App

log = logging.getLogger("duly.failure_callbacks")
_CALLBACK_TIMEOUT = 5.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that failed permanently, as its failure callback receives it."""

    job: JobSnapshot
    payload: dict[str, Any]
    source: ReconciliationSource
    """`failed_callback` in the transaction that ended the job, `scheduled_reconciler` in a later one."""


def check_async_callable(field: str, function: Any, arguments: int, *, fix: str) -> None:
    """Refuse a function that is not async, or that does not take this number of arguments."""
    call = function if inspect.isroutine(function) else getattr(function, "__call__", None)  # noqa: B004
    if isinstance(function, type) or not inspect.iscoroutinefunction(call):
        raise ConfigurationError("not async", field=field, fix=fix)
    try:
        inspect.signature(function).bind(*range(arguments))
    except TypeError as error:
        raise ConfigurationError(f"wrong signature: {error}", field=field, fix=fix) from None


OnFailure = Callable[[Failure, Connection], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class FailureCallbacks:
    """The failure callbacks of a job type: one for dead letters, one for other failures or for all."""

    on_failed: OnFailure | None = None
    on_dead: OnFailure | None = None

    def check(self) -> None:
        """Refuse callbacks that cannot be awaited with a failure and a connection."""
        for name in ("on_failed", "on_dead"):
            callback = getattr(self, name)
            if callback is not None:
                check_async_callable(name, callback, 2, fix="make it `async def (failure, conn)`")

    def __bool__(self) -> bool:
        return self.on_failed is not None or self.on_dead is not None

    def for_outcome(self, outcome: Outcome) -> OnFailure | None:
        """Return the callback for this outcome."""
        return (self.on_dead if outcome is Outcome.DEAD else None) or self.on_failed


class PendingCallback(NamedTuple):
    """A failed job whose callback has not succeeded yet."""

    org_id: UUID
    job_id: UUID
    job_type: str

    @property
    def key(self) -> dict[str, Any]:
        """The values of the primary key."""
        return {"org_id": self.org_id, "job_id": self.job_id}


async def run_failure_callback(
    app: App, conn: Connection, pending: PendingCallback, source: ReconciliationSource
) -> bool:
    """Run a pending callback; return False if another transaction holds it, or if it failed.

    Its writes commit with the caller's transaction, or are rolled back if it fails. The connection has the
    tenant's role while it runs, and the engine's again afterwards.
    """
    try:
        async with conn.transaction():
            if not await claim_callback(conn, pending):
                return False
            await conn.execute(tenant_role_sql(pending.org_id))
            async with asyncio.timeout(_CALLBACK_TIMEOUT):
                await _call(app, conn, pending, source)
            await conn.execute(ENGINE_ROLE_SQL)
    except Exception as error:
        if conn.closed:
            raise  # the connection was lost, which is not the callback's fault
        if conn.info.transaction_status is not TransactionStatus.INTRANS:
            raise StoreError(
                "the callback ended the transaction it was given", fix="leave that to its caller"
            ) from error
        # Log only the redacted report: the error itself may contain secrets.
        report = describe_error(error, job_type=pending.job_type)
        log.warning(
            "failure callback of job %s (%s) failed, retrying later: %s: %s",
            *(pending.job_id, pending.job_type, report.error_class, report.message),
            extra=ids_of(pending),
        )
        await postpone_callback(conn, pending, f"{report.error_class}: {report.message}")
        return False
    return True


async def _call(app: App, conn: Connection, pending: PendingCallback, source: ReconciliationSource) -> None:
    job = await job_store.read_job(conn, pending.org_id, pending.job_id)
    if job is None:
        return  # retention deleted the job
    callback = app.registry.get(pending.job_type).failure_callbacks.for_outcome(job.outcome)
    if callback is None:
        return
    failure = Failure(job, await job_store.read_payload(app, conn, job), source)
    try:
        await callback(failure, conn)
    except (asyncio.CancelledError, SystemExit) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # the caller was cancelled, not the callback
        raise RuntimeError(f"the callback ended by {type(error).__name__}") from error


async def with_failure_callbacks(once: Callable[[bool], Awaitable[T]]) -> T:
    """Run a transaction with its failure callbacks, or without them if they break it: they stay pending."""
    try:
        return await retry_transaction(partial(once, True))
    except (psycopg.Error, DulyError) as error:
        log.warning("ended jobs without their failure callbacks, which are retried later: %s", error)
        return await retry_transaction(partial(once, False))


async def claim_callback(conn: Connection, pending: PendingCallback) -> bool:
    """Claim a pending callback for this transaction; return False if another transaction holds it."""
    cursor = await conn.execute(statement("failure_callbacks/claim"), pending.key)
    return await cursor.fetchone() is not None


async def postpone_callback(conn: Connection, pending: PendingCallback, error: str) -> None:
    """Record the error of a callback, and postpone it."""
    await conn.execute(statement("failure_callbacks/postpone"), {**pending.key, "error": error})


async def list_due_callbacks(
    conn: Connection, job_types: Collection[str], *, limit: int
) -> list[PendingCallback]:
    """Return the pending callbacks of these job types that are due, oldest first."""
    values = {"job_types": list(job_types), "limit": limit}
    cursor = await conn.execute(statement("failure_callbacks/list_due"), values)
    return [PendingCallback(*row) for row in await cursor.fetchall()]
