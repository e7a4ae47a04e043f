"""Putting a job right: the same decision and the same fenced statements as its worker's."""

from __future__ import annotations

from functools import partial

from duly.client.app import App
from duly.client.bridge import pay, telling
from duly.model.decide import Transition, decide
from duly.model.outcome import Overruled
from duly.model.policy import stored_policy
from duly.model.reconciliation import ReconciliationRecord, ReconciliationSource
from duly.model.states import Status
from duly.observe import metrics, settled
from duly.observe.settled import Settled
from duly.store import work
from duly.store.debts import Debt
from duly.store.pool import Connection
from duly.store.suspects import Suspect

_TYPE, _ID = "system", "reconciler"


async def overrule(app: App, suspect: Suspect, record: ReconciliationRecord) -> bool:
    """End a job for this reason; False if it has moved on since it was looked at."""
    to = decide(suspect.hold, Overruled(record), stored_policy(suspect.policy).retry, record.at, 0.0)
    kept = await telling(partial(_overrule, app, suspect, to))
    if kept:
        count(record)
        settled.count([Settled(suspect.job_type, suspect.queue, to, suspect.hold.spent)])
    return kept


async def _overrule(app: App, suspect: Suspect, to: Transition, to_be_told: bool) -> bool:
    async with (await app.ground()).database.engine_session() as conn:
        if suspect.status == Status.QUEUED:
            kept = bool(
                await work.fail_waiting(
                    conn, [(suspect, to)], actor_type=_TYPE, actor_id=_ID, unqueued=not suspect.queued
                )
            )
        else:
            kept = bool(await work.settle(conn, [(suspect, to)], actor_type=_TYPE, actor_id=_ID))
        if kept and to_be_told and to.status is Status.FAILED:
            await tell(app, conn, Debt(suspect.org_id, suspect.job_id, suspect.job_type))
    return kept


async def tell(app: App, conn: Connection, debt: Debt) -> None:
    """Pay a debt in the transaction that made it, if its job type is known here."""
    known, name = app.registry, debt.job_type
    if name in known and known.get(name).bridge:
        await pay(app, conn, debt, ReconciliationSource.FAILED_CALLBACK)


def count(record: ReconciliationRecord) -> None:
    """One more for the metrics."""
    metrics.reconciled(record.kind, record.reason_code)
