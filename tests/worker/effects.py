"""Job types that write an effect in their transaction, and the table of committed effects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from duly import Context, Duly, Job, SyncContext
from tests.worker.working import RETRY_AT_ONCE

CREATE = "create table effects (job_id uuid, attempt int); grant insert, select on effects to public"
WRITE = "insert into effects (job_id, attempt) values (%s, %s)"
KINDS = ["async", "sync"]


def writer(app: Duly, kind: str, then: Callable[[int], Any] = lambda attempt: "done") -> Job[[], Any]:
    """Declare a job type that writes an effect in its transaction, and then returns `then(attempt)`."""

    @app.job("write.async", retry=RETRY_AT_ONCE)
    async def async_handler(ctx: Context) -> Any:
        async with ctx.transaction() as conn:
            await conn.execute(WRITE, [ctx.job.job_id, ctx.attempt])
        return then(ctx.attempt)

    @app.job("write.sync", retry=RETRY_AT_ONCE)
    def sync_handler(ctx: SyncContext) -> Any:
        with ctx.transaction() as conn:
            conn.execute(WRITE, [ctx.job.job_id, ctx.attempt])
        return then(ctx.attempt)

    return async_handler if kind == "async" else sync_handler
