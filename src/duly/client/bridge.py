"""The failure bridge: a job type is told of its failures, in the transaction that ends the job."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from duly.client.payloads import payload_of
from duly.model.error_report import describe
from duly.model.errors import ConfigurationError, DulyError, StoreError
from duly.model.job import JobSnapshot
from duly.model.reconciliation import ReconciliationSource
from duly.model.states import Outcome
from duly.observe.fields import ids_of
from duly.store import debts, jobs
from duly.store.debts import Debt
from duly.store.pool import Connection
from duly.store.session import ENGINE_ROLE, retrying, tenant_role

if TYPE_CHECKING:
    from duly.client.app import App

log = logging.getLogger("duly.bridge")
_PATIENCE = 5.0
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """A job that failed for good, as its callback is told."""

    job: JobSnapshot
    payload: dict[str, Any]
    source: ReconciliationSource
    """`failed_callback` in the transaction that ended the job, `scheduled_reconciler` if it came later."""


def check_async(field: str, given: Any, arguments: int, *, fix: str) -> None:
    """Refuse what cannot be awaited with so many arguments, where it is declared."""
    call = given if inspect.isroutine(given) else getattr(given, "__call__", None)  # noqa: B004
    if isinstance(given, type) or not inspect.iscoroutinefunction(call):
        raise ConfigurationError("not async", field=field, fix=fix)
    try:
        inspect.signature(given).bind(*range(arguments))
    except TypeError as error:
        raise ConfigurationError(f"cannot be called so: {error}", field=field, fix=fix) from None


OnFailure = Callable[[Failure, Connection], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Bridge:
    """Whom a job type tells: of its deaths, if it says so, and of its other failures."""

    on_failed: OnFailure | None = None
    on_dead: OnFailure | None = None

    def check(self) -> None:
        """Refuse what could not run in a transaction of ours."""
        for name in ("on_failed", "on_dead"):
            callback = getattr(self, name)
            if callback is not None:
                check_async(name, callback, 2, fix="make it `async def (failure, conn)`")

    def __bool__(self) -> bool:
        return self.on_failed is not None or self.on_dead is not None

    def of(self, outcome: Outcome) -> OnFailure | None:
        """The one callback for this outcome."""
        return (self.on_dead if outcome is Outcome.DEAD else None) or self.on_failed


async def pay(app: App, conn: Connection, debt: Debt, source: ReconciliationSource) -> bool:
    """Run the callback that is owed; False if it is another's to run, or failed and is put off.

    Everything it writes commits with the caller's transaction, and nothing if it fails. The connection is
    the tenant's while it runs, and the engine's again afterwards.
    """
    try:
        async with conn.transaction():
            if not await debts.take(conn, debt):
                return False
            await conn.execute(tenant_role(debt.org_id))
            async with asyncio.timeout(_PATIENCE):
                await _tell(app, conn, debt, source)
            await conn.execute(ENGINE_ROLE)
    except Exception as error:
        if conn.closed:
            raise  # cut off, by nobody's fault
        if conn.info.transaction_status is not TransactionStatus.INTRANS:
            raise StoreError(
                "the callback ended the transaction it was given", fix="leave that to its caller"
            ) from error
        # What is logged is what is kept: an error may hold what must not be seen.
        said = describe(error, job_type=debt.job_type)
        log.warning(
            "the callback of job %s (%s) failed, and comes again later: %s: %s",
            *(debt.job_id, debt.job_type, said.error_class, said.message),
            extra=ids_of(debt),
        )
        await debts.put_off(conn, debt, f"{said.error_class}: {said.message}")
        return False
    return True


async def _tell(app: App, conn: Connection, debt: Debt, source: ReconciliationSource) -> None:
    job = await jobs.read(conn, debt.org_id, debt.job_id)
    if job is None:
        return  # no longer kept: there is nothing to tell
    callback = app.registry.get(debt.job_type).bridge.of(job.outcome)
    if callback is None:
        return
    failure = Failure(job, await payload_of(app, conn, job), source)
    try:
        await callback(failure, conn)
    except (asyncio.CancelledError, SystemExit) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # it is we who are cancelled
        raise RuntimeError(f"the callback ended by {type(error).__name__}") from error


async def telling(once: Callable[[bool], Awaitable[T]]) -> T:
    """A transaction with the callbacks it owes; without them, should they break it: the debts remain."""
    try:
        return await retrying(partial(once, True))
    except (psycopg.Error, DulyError) as error:
        log.warning("jobs are ended without their callbacks, which come later: %s", error)
        return await retrying(partial(once, False))
