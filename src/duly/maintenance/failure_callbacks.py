"""Retry owed failure callbacks: failed ones, and those whose job type the settling process did not know."""

from __future__ import annotations

import logging
from datetime import timedelta
from functools import partial

import psycopg

from duly.core.errors import DulyError
from duly.core.reconciliation import ReconciliationSource
from duly.db.database import retry_transaction
from duly.jobs import failure_callbacks
from duly.jobs.application import App
from duly.jobs.failure_callbacks import PendingCallback, run_failure_callback
from duly.observability.logs import ids_of

log = logging.getLogger("duly.maintenance")
_MAX_PER_RUN = 50


class FailureCallbackRetrier:
    """The chore that calls owed failure callbacks, each in a transaction of its own."""

    name = "failure_callbacks"

    def __init__(self, app: App, every: timedelta = timedelta(seconds=5)) -> None:
        self._app = app
        self._every = every

    async def once(self) -> timedelta:
        """Retry the due callbacks."""
        await self.retry_due()
        return self._every

    async def retry_due(self) -> dict[PendingCallback, bool]:
        """Retry some due callbacks of the job types declared here; return whether each succeeded."""
        job_types = [job.name for job in self._app.registry if job.failure_callbacks]
        if not job_types:
            return {}
        async with (await self._app.resources()).database.engine() as conn:
            due = await failure_callbacks.list_due_callbacks(conn, job_types, limit=_MAX_PER_RUN)
        return {callback: await self._retry(callback) for callback in due}

    async def _retry(self, callback: PendingCallback) -> bool:
        try:
            return await retry_transaction(partial(self._run, callback))
        except (psycopg.Error, DulyError) as error:
            log.warning(
                "the failure callback of job %s broke its transaction: %s",
                callback.job_id,
                error,
                extra=ids_of(callback),
            )
            async with (await self._app.resources()).database.engine() as conn:
                await failure_callbacks.postpone_callback(
                    conn, callback, f"it broke its transaction: {type(error).__name__}"
                )
            return False

    async def _run(self, callback: PendingCallback) -> bool:
        async with (await self._app.resources()).database.engine() as conn:
            return await run_failure_callback(
                self._app, conn, callback, ReconciliationSource.SCHEDULED_RECONCILER
            )
