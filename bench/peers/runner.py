"""The run: round by round, system by system; results are saved after each."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.peers.bench import Bench, Sizes, Stores, opened
from bench.peers.catalogue import REDIS, System
from bench.peers.environments import NotRun, command_of
from bench.peers.measures import MEASURES, ONCE, Figures, drain
from bench.peers.servers import POSTGRES_SETTINGS, REDIS_SETTINGS, Postgres, Redis

BACKLOG_LIMIT_FACTOR = 10


@dataclass
class Plan:
    """The options of a run."""

    systems: Sequence[System]
    rounds: int = 3
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
        self.commands: dict[str, tuple[list[str], dict[str, str]]] = {}
        self.results: dict[str, Any] = {
            "jobs": plan.sizes.jobs,
            "rounds": plan.rounds,
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
            for number in range(self.plan.rounds):
                for system in self.plan.systems:
                    self.visit(system, stores, number)
                    self.keep(self.results)
        finally:
            if redis is not None:
                redis.close()
            postgres.close()
        return self.results

    def visit(self, system: System, stores: Stores, number: int) -> None:
        """Run all measures of one system in one round."""
        entry = self.results["systems"][system.key]
        if entry["not_run"]:
            return
        say(f"round {number + 1} of {self.plan.rounds}: {system.title}")
        try:
            if system.store == REDIS and stores.redis is None:
                raise NotRun("no redis-server")
            if system.key not in self.commands:
                self.commands[system.key] = command_of(system)
            bench = Bench(system, self.commands[system.key], stores, self.home / "boards", self.plan.sizes)
            with opened(bench):
                entry["about"] = entry["about"] or bench.ask("about")
                figures: Figures = {}
                entry["rounds"].append(figures)
                for name in self.plan.measures:
                    if name not in ONCE or number == 0:
                        self.take(entry, name, figures, partial(MEASURES[name], bench))
                if number == 0:
                    for size in self.plan.backlogs:
                        self.backlog(entry, figures, bench, size)
        except Exception as problem:
            entry["not_run"] = str(problem) or type(problem).__name__
            say(f"  not run: {entry['not_run']}")

    def take(
        self, entry: dict[str, Any], name: str, figures: Figures, measure: Callable[[], Figures]
    ) -> None:
        """Run one measure; its failure stops neither the others nor the run."""
        start = time.monotonic()
        try:
            found = measure()
        except Exception as problem:
            reason = f"round {len(entry['rounds'])}: {type(problem).__name__}: {problem}"
            earlier = entry["failures"].get(name)
            entry["failures"][name] = f"{earlier}; {reason}" if earlier else reason
            say(f"  {name:<10} failed: {problem}")
            return
        figures |= found
        text = ", ".join(f"{k} {v:,.1f}" if isinstance(v, float) else f"{k} {v}" for k, v in found.items())
        say(f"  {name:<10} {text} ({time.monotonic() - start:.1f} s)")

    def backlog(self, entry: dict[str, Any], figures: Figures, bench: Bench, size: int) -> None:
        """Run a large drain, if it is possible in reasonable time."""
        name, rate = f"backlog_{size}", figures.get("drain_1")
        if not isinstance(rate, float):
            figures[name] = "not run: no drain to estimate it from"
            return
        if size / rate > self.plan.backlog_limit:
            figures[name] = f"not run: would take about {max(1, round(size / rate / 60))} min"
            return
        bench.limit = max(self.plan.sizes.step_limit, BACKLOG_LIMIT_FACTOR * self.plan.backlog_limit)
        self.take(entry, name, figures, partial(drain.measure_backlog, bench, size))
        bench.limit = self.plan.sizes.step_limit


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
