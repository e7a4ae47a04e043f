"""One run: build the cluster, load it, inject faults, recover, wait until idle; then keep the records."""

from __future__ import annotations

import asyncio
import secrets
import subprocess
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from tests.chaos.cluster_processes import Crew, environment
from tests.chaos.disk import enter_namespace
from tests.chaos.mutant import MUTANT
from tests.chaos.nemesis import Nemesis
from tests.chaos.pace import pause, tries
from tests.chaos.plan import Fault
from tests.chaos.postgres import Pair, Programs
from tests.chaos.processes import ROOT, left_over, python
from tests.chaos.proxy import Control

# A job that was never claimed has no state yet.
_ACTIVE = """
select (select count(*) from duly.jobs where finished_at is null),
       (select count(*) from duly.claims), (select count(*) from duly.bridge_debts),
       (select count(*) from duly.dead_letters where alerted_at is null)
"""


@dataclass
class Report:
    """What is known of a run besides its history."""

    left_out: dict[str, str] = field(default_factory=dict)
    departures: list[str] = field(default_factory=list)
    drained: dict[str, int] = field(default_factory=dict)
    unfinished: str = ""
    """Jobs that were still active at the end of the time limit."""
    quiet_after: float = 0.0
    left_running: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Run:
    """The options of a run."""

    home: Path
    seed: int
    seconds: float
    rate: float
    plan: list[Fault]
    tell: Callable[[str], None]
    mutant: str = ""
    patience: float = 240.0


async def perform(run: Run, when_quiet: Callable[[Pair, Report], None]) -> Report:
    """Perform the whole run; `when_quiet` is called while the database is still running."""
    report = Report()
    async with _cluster(run) as (pair, proxy, crew, name):
        nemesis = Nemesis(pair, proxy, crew, run.home / "faults.jsonl", run.tell)
        try:
            await _under_care(crew, _load(run, pair, crew, nemesis, report))
        finally:
            report.left_out, report.departures = nemesis.left_out, crew.departures
        report.drained = await asyncio.to_thread(crew.drain)
        run.tell("judging")
        await asyncio.to_thread(when_quiet, pair, report)
    report.left_running = left_over(name)
    return report


async def _under_care(crew: Crew, work: object) -> None:
    care = asyncio.create_task(crew.look_after())
    doing = asyncio.create_task(work)  # type: ignore[arg-type]
    try:
        await asyncio.wait([care, doing], return_when=asyncio.FIRST_COMPLETED)
        if care.done():
            care.result()
        await doing
    finally:
        for task in (care, doing):
            task.cancel()
        await asyncio.gather(care, doing, return_exceptions=True)


@asynccontextmanager
async def _cluster(run: Run) -> AsyncIterator[tuple[Pair, Control, Crew, str]]:
    """Run the processes; all of them are gone at the end."""
    password, name = secrets.token_hex(12), f"{run.home.name}-{secrets.token_hex(4)}"
    pair = Pair(Programs(), run.home, password, enter_namespace())
    proxy: Control | None = None
    crew: Crew | None = None
    try:
        run.tell(f"PostgreSQL from {pair.primary.programs.bindir}")
        await pair.start()
        env = environment(run.home, name, "", password)
        env[MUTANT] = run.mutant
        proxy = Control(run.home / "proxy.log", env)
        proxy.tell("target", path=pair.primary.socket)
        env["DULY_DATABASE_URL"] = f"postgresql://app:{password}@127.0.0.1:{proxy.port}/duly"
        env["DULY_CHAOS_WATCH_URL"] = env["DULY_DATABASE_URL"].replace("app:", "postgres:")
        _prepare(env, "schema", pair.primary.dsn())
        _prepare(env, "begin")
        await pair.add_standby()
        crew = Crew(run.home, env, run.seed, run.rate)
        yield pair, proxy, crew, name
    finally:
        if crew is not None:
            crew.stop()
        if proxy is not None:
            proxy.close()
        pair.stop()


def _prepare(env: dict[str, str], *arguments: str) -> None:
    subprocess.run(python("tests.chaos.prepare", *arguments), env=env, cwd=ROOT, check=True)


async def _load(run: Run, pair: Pair, crew: Crew, nemesis: Nemesis, report: Report) -> None:
    for member in (*crew.workers, *crew.clients, crew.observer):
        member.begin()
    await _until_workers(pair, len(crew.workers))
    run.tell(f"load of {run.rate:.0f} jobs/s, {len(run.plan)} faults in {run.seconds:.0f} s")
    await nemesis.run(run.plan, run.seconds)
    await nemesis.heal()
    run.tell("healed; waiting for quiet")
    healed = time.monotonic()
    (run.home / "stop").touch()
    await asyncio.to_thread(_prepare, crew._env, "end")
    await _until_answered(run, crew)
    report.unfinished = await _until_quiet(run, pair)
    report.quiet_after = time.monotonic() - healed
    (run.home / "quiet").touch()
    await _until_gone(crew)


async def _until_workers(pair: Pair, count: int) -> None:
    async for _ in tries(60):
        if pair.primary.ask("select count(*) from duly.workers") >= count:
            return
    raise RuntimeError("the workers did not come")


async def _until_answered(run: Run, crew: Crew) -> None:
    """Wait until no client repeats a request: its job would come after the quiet."""
    async for _ in tries(run.patience, 0.5):
        if all((run.home / f"{client.name}.answered").exists() for client in crew.clients):
            return
    raise RuntimeError("a client gets no answer")


async def _until_quiet(run: Run, pair: Pair) -> str:
    """Wait until two checks find no active job; return the active ones otherwise."""
    active, quiet = "", 0
    async for _ in tries(run.patience, 0.5):
        try:
            found = await asyncio.to_thread(_active, pair)
        except psycopg.OperationalError:
            continue
        quiet = quiet + 1 if not any(found) else 0
        active = "{} active jobs, {} claims, {} debts, {} letters without an alert".format(*found)
        if quiet >= 3:
            return ""
    return active


def _active(pair: Pair) -> tuple[int, ...]:
    with pair.primary.connect() as conn:
        return conn.execute(_ACTIVE).fetchone() or (1,)


async def _until_gone(crew: Crew) -> None:
    """Wait until the clients have done their final reads and exited."""
    for client in crew.clients:
        client.expected = True
    crew.observer.expected = True
    async for _ in tries(120):
        if all(client.process is None or client.process.poll() is not None for client in crew.clients):
            break
    else:
        raise RuntimeError("a client does not leave")
    codes = {client.name: client.process and client.process.returncode for client in crew.clients}
    if any(codes.values()):
        raise RuntimeError(f"clients left badly: {codes}")
    crew.observer.kill()
    await pause(0)
