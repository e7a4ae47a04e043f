"""Callbacks that are owed: those that failed, or whose job was ended by somebody who did not know them."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

import psycopg

from duly.client.app import App
from duly.client.bridge import pay
from duly.model.errors import DulyError
from duly.model.reconciliation import ReconciliationSource
from duly.observe.fields import ids_of
from duly.store import debts
from duly.store.debts import Debt
from duly.store.session import retrying

log = logging.getLogger("duly.upkeep")
_AT_ONCE = 50


class Payer:
    """The chore that pays debts, each in a transaction of its own."""

    name = "payer"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=5)) -> None:
        self._app = app
        self._every = every

    async def once(self) -> timedelta:
        """Pay what is due."""
        await self.pay()
        return self._every

    async def pay(self) -> dict[Debt, bool]:
        """Pay what is due and known here, so much at most; of each debt whether it was paid."""
        known = [job.name for job in self._app.registry if job.bridge]
        if not known:
            return {}
        async with (await self._app.ground()).database.engine_session() as conn:
            owed = await debts.due(conn, known, limit=_AT_ONCE)
        return {debt: await self._paid(debt) for debt in owed}

    async def _paid(self, debt: Debt) -> bool:
        try:
            return await retrying(partial(self._pay, debt))
        except (psycopg.Error, DulyError) as error:
            said = "the callback of job %s broke its transaction: %s"
            log.warning(said, debt.job_id, error, extra=ids_of(debt))
            async with (await self._app.ground()).database.engine_session() as conn:
                await debts.put_off(conn, debt, f"it broke its transaction: {type(error).__name__}")
            return False

    async def _pay(self, debt: Debt) -> bool:
        async with (await self._app.ground()).database.engine_session() as conn:
            return await pay(self._app, conn, debt, ReconciliationSource.SCHEDULED_RECONCILER)
