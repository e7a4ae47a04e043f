"""The application under test: job types of every kind, well and badly written.

Settings come from the environment, so that workers, clients and isolated processes all use the same cluster.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from duly import Context, Duly, Fail, Failure, RetryPolicy, Snooze, SyncContext
from duly.core.policy import LifecyclePolicy
from tests.chaos.pace import pause

app = Duly()
LEDGER = Path(os.environ.get("DULY_CHAOS_HOME", "."), "outside.log")
_EFFECT = "insert into public.effects (org_id, job_id, attempt) values (%s, %s, %s)"
_BRIDGED = "insert into public.bridged (org_id, job_id, attempt, outcome) values (%s, %s, %s, %s)"
_MIB = 2**20


def tries(most: int) -> RetryPolicy:
    return RetryPolicy(max_attempts=most, base=timedelta(seconds=0.2), cap=timedelta(seconds=1))


def within(seconds: float) -> dict[str, Any]:
    """Return a hard time-out, and a lifecycle that fits it."""
    return {
        "timeout": timedelta(seconds=seconds),
        "lifecycle": LifecyclePolicy(
            expected_max_runtime=timedelta(seconds=seconds / 4), running_stale_after=timedelta(minutes=5)
        ),
    }


def luck(ctx: Context | SyncContext, sides: int) -> int:
    """Return the same random number for the same attempt, wherever it runs."""
    drawn = hashlib.blake2b(f"{ctx.job.job_id}/{ctx.job.attempt}".encode(), digest_size=4).digest()
    return int.from_bytes(drawn, "big") % sides


def note_outside(ctx: Context | SyncContext) -> None:
    """Record an effect outside of any transaction. Its key is the job's, whatever the attempt."""
    line = f"{ctx.job.org_id} {ctx.job.job_id} {ctx.job.attempt} key-{ctx.job.job_id}\n"
    with LEDGER.open("ab", buffering=0) as file:
        file.write(line.encode())


def _mine(ctx: Context | SyncContext) -> list[Any]:
    return [ctx.job.org_id, ctx.job.job_id, ctx.job.attempt]


@app.job("chaos.effect", retry=tries(5), **within(20))
async def effect(ctx: Context, n: int) -> int:
    async with ctx.transaction() as conn:
        await conn.execute(_EFFECT, _mine(ctx))
    return n


@app.job("chaos.effect_slow", retry=tries(6), **within(20))
async def effect_slow(ctx: Context, n: int) -> int:
    """Hold the transaction open for a while; it may fail before it commits."""
    async with ctx.transaction() as conn:
        await conn.execute(_EFFECT, _mine(ctx))
        await pause(0.2)
        if luck(ctx, 4) == 0:
            raise ConnectionError("the provider hung up")
    return n


@app.job("chaos.effect_thread", retry=tries(5), **within(20))
def effect_thread(ctx: SyncContext, n: int) -> int:
    with ctx.transaction() as conn:
        conn.execute(_EFFECT, _mine(ctx))
    return n


@app.job("chaos.effect_process", retry=tries(6), **within(20), isolation="process")
def effect_process(ctx: SyncContext, n: int) -> int:
    with ctx.transaction() as conn:
        conn.execute(_EFFECT, _mine(ctx))
        if luck(ctx, 3) == 0:
            os._exit(3)
    return n


@app.job("chaos.outside", retry=tries(5), **within(20))
async def outside(ctx: Context, n: int) -> int:
    note_outside(ctx)
    await pause(0.02)
    return n


@app.job("chaos.thread", retry=tries(5), **within(20))
def thread(ctx: SyncContext, n: int) -> int:
    ctx.progress(50, "half")
    threading.Event().wait(0.05)
    note_outside(ctx)
    return n


@app.job("chaos.chunks", retry=tries(8), **within(20), allows_partial=True)
async def chunks(ctx: Context, parts: int) -> dict[str, Any]:
    async for chunk in ctx.chunks(range(parts)):
        async with chunk:
            await pause(0.05)
            if luck(ctx, 7) == 0 and chunk.item == parts - 1:
                raise ValueError("a bad chunk")
            chunk.result = {"part": chunk.item}
        ctx.progress(min(99.0, 100 * (chunk.item + 1) / parts), f"part {chunk.item}")
    return await ctx.results()


@app.job("chaos.flaky", retry=tries(6), **within(20))
async def flaky(ctx: Context, n: int) -> int:
    ctx.progress(luck(ctx, 90))
    if luck(ctx, 3) == 0:
        raise TimeoutError("the provider was slow")
    return n


@app.job("chaos.poison", retry=tries(2), **within(20))
async def poison(n: int) -> int:
    raise RuntimeError(f"{n} is poison")


@app.job("chaos.invalid", retry=tries(5), **within(20), never_retry=[ValueError])
async def invalid(n: int) -> int:
    raise ValueError(f"{n} is invalid")


@app.job("chaos.blocked", retry=tries(5), **within(20))
async def blocked(n: int) -> int:
    raise Fail("no consent", code="consent.missing", blocked=True)


@app.job("chaos.snooze", retry=tries(5), **within(20))
async def snooze(ctx: Context, n: int) -> int:
    if ctx.job.returned < 2:
        raise Snooze(0.3, "not yet")
    return n


@app.job("chaos.long", retry=tries(6), **within(30))
async def long(ctx: Context, steps: int) -> int:
    """Check for cancellation between steps."""
    for step in range(steps):
        ctx.check_canceled()
        await pause(0.25)
        ctx.progress(100 * step / steps)
    return steps


@app.job("chaos.delayed", retry=tries(5), **within(20), schedulable=True)
async def delayed(ctx: Context, n: int) -> int:
    async with ctx.transaction() as conn:
        await conn.execute(_EFFECT, _mine(ctx))
    return n


@app.job("chaos.exit", retry=tries(4), **within(20), isolation="process")
def leave(ctx: SyncContext, n: int) -> int:
    note_outside(ctx)
    if luck(ctx, 2) == 0:
        os._exit(1)
    return n


@app.job("chaos.hang", retry=tries(2), **within(1))
async def hang(ctx: Context, n: int) -> int:
    if luck(ctx, 2) == 0:
        await asyncio.Event().wait()
    return n


@app.job("chaos.hang_thread", retry=tries(2), **within(1))
def hang_thread(ctx: SyncContext, n: int) -> int:
    threading.Event().wait(2)
    return n


@app.job("chaos.block", retry=tries(3), **within(20))
async def block(ctx: Context, seconds: float) -> None:
    """Block the event loop, a common mistake."""
    threading.Event().wait(seconds)


@app.job("chaos.leak", retry=tries(2), **within(20), isolation="process", memory_limit=384 * _MIB)
def leak(ctx: SyncContext, n: int) -> int:
    if luck(ctx, 2) == 0:
        return len([bytearray(_MIB) for _ in range(1024)])
    return n


@app.job("chaos.hog", retry=tries(5), **within(20))
async def hog(ctx: Context, seconds: float) -> None:
    """Hold connections; many of these jobs hold all of them."""
    async with ctx.session() as conn:
        await conn.execute("select 1")
        await pause(seconds)


@app.job("chaos.tick", retry=tries(5), **within(20), schedulable=True)
async def tick(ctx: Context) -> None:
    async with ctx.transaction() as conn:
        await conn.execute(_EFFECT, _mine(ctx))


async def _tell(failure: Failure, conn: Any) -> None:
    job = failure.job
    await conn.execute(_BRIDGED, [job.org_id, job.job_id, job.attempt, job.outcome.value])


@app.job("chaos.bridged", retry=tries(2), on_failed=_tell, **within(20))
async def bridged(ctx: Context, n: int) -> int:
    """Fail in one of several ways, or succeed; a kill in the last attempt ends it too."""
    await pause(0.1)
    match luck(ctx, 4):
        case 0:
            raise Fail("refused", code="bridge.refused")
        case 1 | 2:
            raise ConnectionError("the provider hung up")
        case _:
            return n


EFFECTS = {
    "chaos.effect",
    "chaos.effect_slow",
    "chaos.effect_thread",
    "chaos.effect_process",
    "chaos.delayed",
    "chaos.tick",
}
"""Job types with exactly one effect in `ctx.transaction()`."""
OUTSIDE = {"chaos.outside", "chaos.thread", "chaos.exit"}
"""Job types with an effect outside the database."""

BRIDGED = {"chaos.bridged"}
"""Job types with a failure callback."""

TABLES = """
create table public.effects (org_id uuid not null, job_id uuid not null, attempt integer not null);
create table public.bridged (
    org_id uuid not null, job_id uuid not null, attempt integer not null, outcome text not null
);
grant insert, select on public.effects, public.bridged to duly_tenant;
"""

ORGS = [UUID(f"c0000000-0000-4000-8000-{number:012d}") for number in range(1, 5)]
