"""The end of an attempt that has a transaction of its own: commit both or neither."""

from __future__ import annotations

import asyncio

import psycopg

from duly.model.decide import finish
from duly.model.error_report import describe
from duly.model.errors import StoreError
from duly.model.outcome import Done, Ending, ErrorInfo, Failed, Lost, Retry
from duly.worker.run import Run

_PATIENCE = 60.0


async def complete(run: Run, ending: Ending) -> Ending | None:
    """Settle a finished attempt in its own transaction; what is still to be settled otherwise."""
    bound = run.bound
    if bound is None:
        return ending
    if not isinstance(ending, Done):
        # A handler that did not end by itself may still be inside.
        await bound.undo(cut=run.abandoned or run.forced is not None)
        return ending
    if not bound.is_open:
        return ending
    try:
        async with asyncio.timeout(_PATIENCE):
            ours = await bound.complete(run.job, finish(run.hold, ending), run.worker_id)
    except (psycopg.DataError, ValueError, TypeError) as error:
        said = f"PostgreSQL refused what the handler left: {type(error).__name__}"
        return Failed(ErrorInfo("result.unstorable", said))
    except (psycopg.Error, StoreError, TimeoutError) as error:
        # It may have been committed all the same. Then the fence holds, and this retry changes nothing.
        return Retry(describe(error, job_type=run.job.job_type))
    return None if ours else Lost("another attempt has taken over")
