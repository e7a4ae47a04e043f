"""Job types with isolation="process", at module level so that a child process can import them.

The application has no database URL: its processes get that of the worker that started them.
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
BASE_EXCEPTIONS: dict[str, type[BaseException]] = {
    error.__name__: error
    for error in (BaseException, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
}


@app.job("isolated.get_pid", isolation="process")
def get_pid(n: int) -> int:
    return os.getpid()


@app.job("isolated.exit", isolation="process", retry=TWO_ATTEMPTS)
def exit_process(code: int) -> None:
    os._exit(code)


@app.job("isolated.exit_async", isolation="process", retry=ONE_ATTEMPT)
async def exit_process_async() -> None:
    os._exit(0)


@app.job("isolated.allocate", isolation="process", retry=ONE_ATTEMPT, memory_limit=512 * MIB)
def allocate(mebibytes: int) -> int:
    return len([bytearray(MIB) for _ in range(mebibytes)])


@app.job("isolated.hang", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(0.5))
def hang() -> None:
    threading.Event().wait()


@app.job("isolated.spin", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(0.5))
async def spin() -> None:
    while True:
        pass


@app.job("isolated.raise", isolation="process", retry=ONE_ATTEMPT)
def raise_sync(error: str) -> None:
    raise BASE_EXCEPTIONS[error]("nasty")


@app.job("isolated.raise_async", isolation="process", retry=ONE_ATTEMPT)
async def raise_async(error: str) -> None:
    raise BASE_EXCEPTIONS[error]("nasty")


@app.job("isolated.return_text", isolation="process", retry=RETRY_AT_ONCE)
def return_text(size: int) -> str:
    return "x" * size


@app.job("isolated.return_object", isolation="process", retry=RETRY_AT_ONCE)
def return_object() -> Any:
    return object()


@app.job("isolated.child")
async def child(kind: str) -> None: ...


@app.job("isolated.parent", isolation="process")
def enqueue_children(ctx: SyncContext) -> None:
    ctx.enqueue(child.call("sync"))
    with ctx.transaction():
        ctx.enqueue(child.call("sync, in the transaction"))


@app.job("isolated.parent_async", isolation="process")
async def enqueue_children_async(ctx: Context) -> None:
    await ctx.enqueue(child.call("async"))
    async with ctx.transaction():
        await ctx.enqueue(child.call("async, in the transaction"))


@app.job("isolated.write", isolation="process", retry=RETRY_AT_ONCE)
def write(ctx: SyncContext, ending: str, marks_dir: str) -> str:
    with ctx.transaction() as conn:
        conn.execute("insert into effects (job_id, attempt) values (%s, %s)", [ctx.job.job_id, ctx.attempt])
    return _finish(ending, Path(marks_dir) / str(ctx.job.job_id))


@app.job("isolated.write_async", isolation="process", retry=RETRY_AT_ONCE)
async def write_async(ctx: Context, ending: str, marks_dir: str) -> str:
    async with ctx.transaction() as conn:
        await conn.execute(
            "insert into effects (job_id, attempt) values (%s, %s)", [ctx.job.job_id, ctx.attempt]
        )
    return _finish(ending, Path(marks_dir) / str(ctx.job.job_id))


def _finish(ending: str, marker: Path) -> str:
    """End the first attempt as `ending` says; complete the second one."""
    if marker.exists():
        return ending
    marker.touch()
    if ending == "error":
        raise ValueError("not yet")
    if ending == "exit":
        os._exit(1)
    if ending == "snooze":
        raise Snooze(0)
    return ending


@app.job("isolated.chunks", isolation="process", retry=RETRY_AT_ONCE, allows_partial=True)
def process_chunks(ctx: SyncContext, parts: list[str], ledger: str) -> dict[str, Any]:
    for chunk in ctx.chunks(parts):
        with chunk:
            with Path(ledger).open("a") as file:
                file.write(f"{chunk.item}\n")
            if chunk.item == "exit" and ctx.attempt == 1:
                os._exit(1)
            chunk.result = chunk.item.upper()
    ctx.progress(99, "almost")
    return ctx.results()


@app.job("isolated.cancelable", isolation="process", retry=ONE_ATTEMPT)
def cancelable(ctx: SyncContext, started: str) -> None:
    """Stop on a cancel request."""
    Path(started).touch()
    while True:
        ctx.check_canceled()
        threading.Event().wait(0.01)


@app.job("isolated.start", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(1))
def start_subprocess(pid_file: str) -> None:
    """Start a subprocess and wait for it."""
    started = subprocess.Popen(["sleep", "600"])
    Path(pid_file).write_text(str(started.pid))
    started.wait()


@app.job("isolated.pool", isolation="process", retry=ONE_ATTEMPT)
def use_process_pool() -> list[int]:
    """Use a multiprocessing pool inside the handler."""
    with multiprocessing.get_context("spawn").Pool(1) as workers:
        return workers.map(abs, [-1, -2])


@app.job("isolated.uncancelable", isolation="process", retry=ONE_ATTEMPT)
async def uncancelable(started: str) -> None:
    """Ignore cancel requests."""
    Path(started).touch()
    while True:
        threading.Event().wait(0.01)


@app.job("isolated.log_then_hang", isolation="process", retry=ONE_ATTEMPT, timeout=seconds(0.5))
def log_then_hang(ctx: SyncContext) -> None:
    ctx.log.info("about to hang")
    threading.Event().wait()
