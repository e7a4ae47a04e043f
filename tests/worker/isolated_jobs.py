"""Job types that run in processes of their own: at the top of a module, where such a process finds them.

The application names no database. Its processes get the one of the worker that started them.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

from duly import Context, Duly, Snooze, SyncContext
from tests.worker.working import ONE_ATTEMPT, RETRY_AT_ONCE, TWO_ATTEMPTS, seconds

app = Duly()
MIB = 2**20
NASTY: dict[str, type[BaseException]] = {
    error.__name__: error
    for error in (BaseException, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
}


@app.job("isolated.who", isolation="process")
def who(n: int) -> int:
    return os.getpid()


@app.job("isolated.exit", isolation="process", retry=TWO_ATTEMPTS)
def leave(code: int) -> None:
    os._exit(code)


@app.job("isolated.exit_softly", isolation="process", retry=ONE_ATTEMPT)
async def leave_softly() -> None:
    os._exit(0)


@app.job("isolated.eat", isolation="process", retry=ONE_ATTEMPT, memory_limit=512 * MIB)
def eat(mebibytes: int) -> int:
    return len([bytearray(MIB) for _ in range(mebibytes)])


@app.job("isolated.hang", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(0.5))
def hang() -> None:
    threading.Event().wait()


@app.job("isolated.spin", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(0.5))
async def spin() -> None:
    while True:
        pass


@app.job("isolated.raise", isolation="process", retry=ONE_ATTEMPT)
def raise_plainly(error: str) -> None:
    raise NASTY[error]("nasty")


@app.job("isolated.raise_softly", isolation="process", retry=ONE_ATTEMPT)
async def raise_softly(error: str) -> None:
    raise NASTY[error]("nasty")


@app.job("isolated.boast", isolation="process", retry=RETRY_AT_ONCE)
def boast(size: int) -> str:
    return "x" * size


@app.job("isolated.result", isolation="process", retry=RETRY_AT_ONCE)
def return_nonsense() -> Any:
    return object()


@app.job("isolated.child")
async def child(kind: str) -> None: ...


@app.job("isolated.parent", isolation="process")
def parent(ctx: SyncContext) -> None:
    ctx.enqueue(child.call("plain"))
    with ctx.transaction():
        ctx.enqueue(child.call("plain, in the transaction"))


@app.job("isolated.parent_softly", isolation="process")
async def parent_softly(ctx: Context) -> None:
    await ctx.enqueue(child.call("async"))
    async with ctx.transaction():
        await ctx.enqueue(child.call("async, in the transaction"))


@app.job("isolated.write", isolation="process", retry=RETRY_AT_ONCE)
def write(ctx: SyncContext, ending: str, marks: str) -> str:
    with ctx.transaction() as conn:
        conn.execute("insert into effects (job_id, attempt) values (%s, %s)", [ctx.job.job_id, ctx.attempt])
    return _ended(ending, Path(marks) / str(ctx.job.job_id))


@app.job("isolated.write_softly", isolation="process", retry=RETRY_AT_ONCE)
async def write_softly(ctx: Context, ending: str, marks: str) -> str:
    async with ctx.transaction() as conn:
        await conn.execute(
            "insert into effects (job_id, attempt) values (%s, %s)", [ctx.job.job_id, ctx.attempt]
        )
    return _ended(ending, Path(marks) / str(ctx.job.job_id))


def _ended(ending: str, mark: Path) -> str:
    """The first try ends so, and the second well."""
    if mark.exists():
        return ending
    mark.touch()
    if ending == "error":
        raise ValueError("not yet")
    if ending == "exit":
        os._exit(1)
    if ending == "snooze":
        raise Snooze(0)
    return ending


@app.job("isolated.chunks", isolation="process", retry=RETRY_AT_ONCE, allows_partial=True)
def chunked(ctx: SyncContext, parts: list[str], ledger: str) -> dict[str, Any]:
    for chunk in ctx.chunks(parts):
        with chunk:
            with Path(ledger).open("a") as file:
                file.write(f"{chunk.item}\n")
            if chunk.item == "exit" and ctx.attempt == 1:
                os._exit(1)
            chunk.result = chunk.item.upper()
    ctx.progress(99, "almost")
    return ctx.results()


@app.job("isolated.patient", isolation="process", retry=ONE_ATTEMPT)
def patient(ctx: SyncContext, started: str) -> None:
    """Obeys a cancel."""
    Path(started).touch()
    while True:
        ctx.check_canceled()
        threading.Event().wait(0.01)


@app.job("isolated.start", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(1))
def start(pid_file: str) -> None:
    """Waits for a process of its own."""
    started = subprocess.Popen(["sleep", "600"])
    Path(pid_file).write_text(str(started.pid))
    started.wait()


@app.job("isolated.pool", isolation="process", retry=ONE_ATTEMPT)
def pool() -> list[int]:
    """Has processes of its own, the usual way."""
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        return workers.map(abs, [-1, -2])


@app.job("isolated.deaf", isolation="process", retry=ONE_ATTEMPT)
async def deaf(started: str) -> None:
    """Does not."""
    Path(started).touch()
    while True:
        threading.Event().wait(0.01)


@app.job("isolated.talk", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(0.5))
def talk(ctx: SyncContext) -> None:
    ctx.log.info("about to hang")
    threading.Event().wait()
