"""The run: in every round every measure, in it every system; results are saved after each measure.

A measurement begins when other processes are quiet. The systems take turns and begin with another one in each
round, so that a machine that becomes slower does so for all. A system has another round of a measure until
its ratio to Duly is known well enough.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers.bench import Bench, Sizes, Stores, opened
from bench.peers.catalogue import OURS, REDIS, System
from bench.peers.environments import NotRun, command_of
from bench.peers.figures import is_settled
from bench.peers.measures import JUDGED, MEASURES, ONCE, Figures, drain
from bench.peers.processes import Program, cpu_seconds
from bench.peers.quiet import BUSY, QUIET, Quiet
from bench.peers.servers import POSTGRES_SETTINGS, REDIS_SETTINGS, Postgres, Redis

BACKLOG_LIMIT_FACTOR = 10


@dataclass
class Plan:
    """The options of a run."""

    systems: Sequence[System]
    rounds: int = 6
    """At least; six are the fewest that give an interval."""
    rounds_max: int = 15
    within: float = 0.1
    """The share of a ratio by which its interval may differ from it."""
    quiet_wait: float = 20.0
    quiet_budget: float = 600.0
    sizes: Sizes = field(default_factory=Sizes)
    measures: Sequence[str] = tuple(MEASURES)
    backlogs: Sequence[int] = ()
    backlog_limit: float = 120.0


class Run:
    """All measurements of a plan, in turn."""

    def __init__(self, plan: Plan, home: Path, keep: Callable[[dict[str, Any]], None]) -> None:
        self.plan = plan
        self.home = home
        self.keep = keep
        self.benches: dict[str, Bench] = {}
        self.closing = ExitStack()
        self.results: dict[str, Any] = {
            "jobs": plan.sizes.jobs,
            "rounds": 0,
            "rounds_max": plan.rounds_max,
            "within": plan.within,
            "quiet": {"before": QUIET, "during": BUSY, "waited_s": 0.0},
            "measures": list(plan.measures),
            "backlogs": list(plan.backlogs),
            "machine": machine(),
            "systems": {
                system.key: {
                    "title": system.title,
                    "language": system.language,
                    "store": system.store,
                    "about": {},
                    "not_run": None,
                    "rounds": [],
                    "busy": [],
                    "failures": {},
                }
                for system in plan.systems
            },
        }

    def go(self) -> dict[str, Any]:
        """Measure everything; a system that cannot be measured is recorded with the reason."""
        postgres = Postgres(self.home / "postgres")
        redis = None
        try:
            if Redis.is_here() and any(system.store == REDIS for system in self.plan.systems):
                redis = Redis(self.home / "redis")
            stores = Stores(postgres, redis)
            self.results["machine"] |= {
                "postgres": postgres.version,
                "postgres_settings": POSTGRES_SETTINGS,
                "redis": redis.version if redis else None,
                "redis_settings": REDIS_SETTINGS,
            }
            self.quiet = Quiet(
                partial(own_seconds, postgres, redis),
                wait=self.plan.quiet_wait,
                budget=self.plan.quiet_budget,
            )
            with self.closing:
                for number in range(self.plan.rounds_max):
                    if not self.round(number, stores):
                        break
        finally:
            if redis is not None:
                redis.close()
            postgres.close()
        return self.results

    def round(self, number: int, stores: Stores) -> bool:
        """Run what another round is needed for; return whether there was anything."""
        due = {name: systems for name in self.plan.measures if (systems := self.due(name, number))}
        if not due:
            return False
        self.results["rounds"] = number + 1
        for entry in self.results["systems"].values():
            if not entry["not_run"]:
                entry["rounds"].append({})
                entry["busy"].append({})
        for name, systems in due.items():
            say(f"round {number + 1}: {name}")
            for system in systems:
                self.visit(system, stores, partial(self.take, name, MEASURES[name]))
        # Of the others once: no target needs more, and most of them take minutes.
        patient = [
            s for s in self.plan.systems if number == 0 or (s.key == OURS and number < self.plan.rounds)
        ]
        for size in self.plan.backlogs if patient else ():
            say(f"backlog of {size:,}")
            for system in patient:
                self.visit(system, stores, partial(self.backlog, size))
        return True

    def due(self, name: str, number: int) -> list[System]:
        """Return the systems whose measure is repeated in this round, in its order."""
        systems = self.plan.systems
        if name in ONCE:
            return rotated(systems, 0) if number == 0 else []
        if number < min(self.plan.rounds, self.plan.rounds_max):
            return rotated(systems, number)
        wide = {
            system.key
            for system in systems
            if system.key != OURS
            and not is_settled(self.results, system.key, JUDGED.get(name, ()), self.plan.within)
        }
        return rotated([s for s in systems if s.key in {*wide, OURS}], number) if wide else []

    def visit(self, system: System, stores: Stores, use: Callable[[Bench], None]) -> None:
        """Use the bench of a system; one that cannot be opened is recorded with the reason."""
        entry = self.results["systems"][system.key]
        if entry["not_run"]:
            return
        try:
            use(self.opened(system, stores))
        except Exception as problem:
            entry["not_run"] = str(problem) or type(problem).__name__
            if not any(entry["rounds"]):
                entry["rounds"].clear()
                entry["busy"].clear()
            say(f"  {system.title}: not run: {entry['not_run']}")
        self.results["quiet"]["waited_s"] = round(self.quiet.waited, 1)
        self.keep(self.results)

    def opened(self, system: System, stores: Stores) -> Bench:
        """Return the bench of a system; it stays open until the end of the run."""
        if system.key not in self.benches:
            if system.store == REDIS and stores.redis is None:
                raise NotRun("no redis-server")
            bench = Bench(system, command_of(system), stores, self.home / "boards", self.plan.sizes)
            self.closing.enter_context(opened(bench))
            self.results["systems"][system.key]["about"] = bench.ask("about")
            self.benches[system.key] = bench
        return self.benches[system.key]

    def take(self, name: str, measure: Callable[[Bench], Figures], bench: Bench) -> None:
        """Run one measure when others are quiet; its failure stops neither the others nor the run."""
        entry = self.results["systems"][bench.system.key]
        others = self.quiet.until_quiet()
        before = self.quiet.sample()
        start = time.monotonic()
        try:
            found = measure(bench)
        except Exception as problem:
            reason = f"round {len(entry['rounds'])}: {type(problem).__name__}: {problem}"
            earlier = entry["failures"].get(name)
            entry["failures"][name] = f"{earlier}; {reason}" if earlier else reason
            say(f"  {bench.system.title:<16} failed: {problem}")
            return
        finally:
            bench.leave()
        during = self.quiet.sample().others_since(before)
        busy = others > QUIET or during > BUSY
        entry["rounds"][-1] |= found
        if busy:
            entry["busy"][-1] |= dict.fromkeys(found, round(max(others, during), 2))
        text = ", ".join(f"{k} {v:,.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items())
        note = f"others used {during:.2f} cores{', busy' if busy else ''}"
        say(f"  {bench.system.title:<16} {text} ({time.monotonic() - start:.1f} s; {note})")

    def backlog(self, size: int, bench: Bench) -> None:
        """Run a large drain, if it is possible in reasonable time."""
        figures: Figures = self.results["systems"][bench.system.key]["rounds"][-1]
        name, rate = f"backlog_{size}", figures.get("drain_1")
        if not isinstance(rate, float):
            figures[name] = "not run: no drain to estimate it from"
            return
        if size / rate > self.plan.backlog_limit:
            figures[name] = f"not run: would take about {max(1, round(size / rate / 60))} min"
            return
        bench.limit = max(self.plan.sizes.step_limit, BACKLOG_LIMIT_FACTOR * self.plan.backlog_limit)
        self.take(name, partial(drain.measure_backlog, jobs=size), bench)
        bench.limit = self.plan.sizes.step_limit


def rotated(systems: Sequence[System], number: int) -> list[System]:
    """Return the systems in the order of a round: each round begins with the next one."""
    first = number % len(systems)
    return [*systems[first:], *systems[:first]]


def own_seconds(postgres: Postgres, redis: Redis | None) -> float:
    """Return the CPU time of the benchmark, its programs and its servers so far."""
    servers = [postgres.postmaster, *([redis.process.pid] if redis else [])]
    return cpu_seconds(os.getpid(), *servers) + Program.orphaned


def machine() -> dict[str, Any]:
    """Describe the machine, without its name."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "system": platform.system(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


def keeper(path: Path | None) -> Callable[[dict[str, Any]], None]:
    """Return a function that writes the results atomically."""

    def keep(results: dict[str, Any]) -> None:
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            side = path.with_name(f"{path.name}.new")
            side.write_text(json.dumps(results, indent=2) + "\n")
            side.replace(path)

    return keep


def say(line: str) -> None:
    """Print progress to stderr."""
    print(line, file=sys.stderr, flush=True)
