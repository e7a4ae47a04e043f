"""Inject the faults of the plan at their times, and record begin and end of each."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from math import ceil
from pathlib import Path
from typing import Any

import psycopg

from tests.chaos.client_log import Logbook
from tests.chaos.cluster_processes import Crew, Member
from tests.chaos.observer import FULL
from tests.chaos.pace import pause, tries
from tests.chaos.plan import Fault
from tests.chaos.postgres import Pair
from tests.chaos.processes import children_of, end
from tests.chaos.proxy import Control

_LATEST = 15.0
"""Seconds that a fault may be late because its victim has not recovered; then it is skipped."""
_TERMINATE = "select pg_terminate_backend(pid) from unnest(%s::integer[]) pid"


class Nemesis:
    """Injects faults. Two faults of one group never overlap; impossible faults are reported."""

    def __init__(
        self, pair: Pair, proxy: Control, crew: Crew, log: Path, tell: Callable[[str], None]
    ) -> None:
        self._pair = pair
        self._proxy = proxy
        self._crew = crew
        self._log = Logbook(log, "nemesis")
        self._full = log.with_name(FULL)
        self._tell = tell
        self._groups: dict[str, asyncio.Lock] = {}
        self.left_out: dict[str, str] = {}
        """Kinds that could not be done, and why."""
        self._late: Counter[str] = Counter()
        self._started = 0.0

    async def run(self, plan: list[Fault], seconds: float) -> None:
        """Inject all faults, from now on."""
        self._started = started = time.monotonic()
        async with asyncio.TaskGroup() as group:
            for fault in plan:
                await pause(started + fault.at - time.monotonic())
                group.create_task(self._commit(fault))
            await pause(started + seconds - time.monotonic())

    async def _commit(self, fault: Fault) -> None:
        async with self._groups.setdefault(fault.group, asyncio.Lock()):
            # One at a time: a victim that has not recovered is spared, and so is the last live one.
            for member in {"worker": self._crew.workers, "client": self._crew.clients}.get(fault.group, []):
                await member.until_ready()
            if time.monotonic() > self._started + fault.at + _LATEST:
                self._late[fault.kind] += 1
                self.left_out[fault.kind] = f"{self._late[fault.kind]} times: what it hurts was not back yet"
                return
            self._tell(str(fault))
            begun_at = time.time()
            do: Callable[[Fault], Awaitable[dict[str, Any] | None]] = getattr(self, f"_{fault.kind}")
            noted = await do(fault)
            if noted is None:
                return
            over_at = noted.pop("over_at", None) or time.time()
            message = {"kind": fault.kind, "planned": fault.at, **fault.details, **noted}
            self._log.write("fault", begun_at=begun_at, over_at=over_at, **message)
            await self._settle(fault)

    async def _settle(self, fault: Fault) -> None:
        """Repair what a fault has left."""
        if fault.kind == "failover":
            await self._pair.add_standby()

    def _victim(self, fault: Fault) -> Member:
        return (
            self._crew.workers[fault.victim] if fault.group == "worker" else self._crew.clients[fault.victim]
        )

    # Workers and clients.

    async def _worker_kill(self, fault: Fault) -> dict[str, Any]:
        victim = self._victim(fault)
        pid, killed_at = victim.pid, time.time()
        victim.kill()
        await pause(0.5)
        victim.begin()
        return {"pid": pid, "over_at": killed_at}

    async def _client_kill(self, fault: Fault) -> dict[str, Any]:
        return await self._worker_kill(fault)

    async def _worker_stop(self, fault: Fault) -> dict[str, Any]:
        victim = self._victim(fault)
        stopped_at = time.time()
        victim.send(signal.SIGSTOP)
        await pause(fault.seconds)
        victim.send(signal.SIGCONT)
        return {"pid": victim.pid, "stopped_at": stopped_at}

    async def _worker_drain(self, fault: Fault) -> dict[str, Any]:
        return {"pid": self._victim(fault).pid, "code": await self._replace(self._victim(fault))}

    async def _worker_clock(self, fault: Fault) -> dict[str, Any]:
        victim = self._victim(fault)
        code = await self._replace(victim, clock=3600.0 * fault.details["hours"])
        pid = victim.pid
        await victim.until_ready()
        await pause(fault.seconds)
        return {"pid": pid, "code": code, "code_after": await self._replace(victim)}

    async def _replace(self, member: Member, clock: float = 0.0) -> int:
        member.expected = True
        assert member.process is not None
        code = await asyncio.to_thread(end, member.process, 20)
        member.begin(clock)
        return code

    # The network.

    async def _cut(self, fault: Fault) -> dict[str, Any]:
        return {"links": self._proxy.tell("cut", share=fault.details["share"], seed=int(fault.at * 10))}

    async def _delay(self, fault: Fault) -> dict[str, Any]:
        self._proxy.tell("slow", seconds=fault.details["delay"])
        return await self._heal_after(fault.seconds)

    async def _hole(self, fault: Fault) -> dict[str, Any]:
        self._proxy.tell("hole", share=fault.details["share"], seed=int(fault.at * 10))
        return await self._heal_after(fault.seconds, then=fault.details["then"])

    async def _deaf(self, fault: Fault) -> dict[str, Any]:
        self._proxy.tell("deaf", share=fault.details["share"], seed=int(fault.at * 10))
        return await self._heal_after(fault.seconds)

    async def _heal_after(self, seconds: float, *, then: str = "resume") -> dict[str, Any]:
        await pause(seconds)
        return {"links": self._proxy.tell("heal", then=then)}

    # The backends.

    async def _terminate(self, fault: Fault) -> dict[str, Any]:
        async for _ in tries(10):
            with suppress(psycopg.OperationalError):
                found = await asyncio.to_thread(self._pair.primary.backends)
                chosen = random.Random(fault.at).sample(found, ceil(fault.details["share"] * len(found)))
                await asyncio.to_thread(self._pair.primary.ask, _TERMINATE, chosen)
                if chosen:
                    return {"terminated": len(chosen)}
        return {"terminated": 0}

    async def _crowd(self, fault: Fault) -> dict[str, Any]:
        """Take every connection that the server grants to ordinary roles."""
        with ExitStack() as held:
            taken = await asyncio.to_thread(self._take_all, held)
            await pause(fault.seconds)
        return {"taken": taken}

    def _take_all(self, held: ExitStack) -> int:
        dsn = self._pair.primary.dsn(user="app")
        taken = 0
        with suppress(psycopg.OperationalError):
            while True:
                held.enter_context(psycopg.connect(dsn, autocommit=True, connect_timeout=5))
                taken += 1
        return taken

    # The database.

    async def _pg_kill(self, fault: Fault) -> dict[str, Any]:
        primary = self._pair.primary
        primary.kill()
        await pause(fault.seconds)
        primary.start()
        await primary.until_ready("duly", keep_alive=True)
        return {}

    async def _backend_kill(self, fault: Fault) -> dict[str, Any]:
        """Kill one backend; PostgreSQL then restarts all of them."""
        primary = self._pair.primary
        with suppress(psycopg.OperationalError, ProcessLookupError, IndexError):
            found = await asyncio.to_thread(primary.backends)
            os.kill(random.Random(fault.at).choice(found), signal.SIGKILL)
        await pause(0.2)
        await primary.until_ready("duly", keep_alive=True)
        return {}

    async def _disk_full(self, fault: Fault) -> dict[str, Any] | None:
        primary = self._pair.primary
        if primary.disk is None:
            self.left_out["disk_full"] = self._pair.no_disks or "no disk of our own"
            return None
        # No worker can sweep then: the observer must know.
        self._full.touch()
        free = await asyncio.to_thread(primary.disk.fill)
        try:
            await pause(fault.seconds)
        finally:
            primary.disk.empty()
            self._full.unlink()
        await primary.until_ready("duly", keep_alive=True)
        return {"filled": free}

    async def _failover(self, fault: Fault) -> dict[str, Any] | None:
        if not await self._pair.until_safe():
            self.left_out["failover"] = "there was no synchronous standby"
            return None
        self._pair.primary.kill()
        await self._pair.promote()
        self._proxy.tell("target", path=self._pair.primary.socket)
        return {"primary": self._pair.primary.name}

    async def heal(self) -> None:
        """End all faults; the standby may still be starting."""
        self._proxy.tell("heal", then="stay")
        for member in (*self._crew.workers, *self._crew.clients):
            member.send(signal.SIGCONT)
        if self._pair.primary.disk is not None:
            self._pair.primary.disk.empty()
        await self._pair.primary.until_ready("duly", keep_alive=True)
        assert self._pair.primary.process is not None
        assert children_of(self._pair.primary.process.pid)
