"""Enqueue and drain together for minutes: whether tables bloat and claims slow down.

One process enqueues in batches, one works, through the public API, with all features on. The backlog stays
below 10,000, and above 2,000 if the worker is the slower one. Every few seconds the tables are sampled; the
verdict covers the samples after the first two minutes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from figures.numbers import percentiles
from figures.server import BenchServer, open_bench_server

from sustained.report import as_line, as_verdict, write
from sustained.sides import Side, Tally, both_sides, make_app, run_enqueuer, run_worker
from sustained.verdict import judge
from sustained.watch import GROWING, look

ORGS = 20
OPTIONS = {"shared_buffers": "1GB", "max_wal_size": "16GB", "checkpoint_timeout": "30min"}


def watch(
    conn: psycopg.Connection[Any], tally: Tally, sides: tuple[Side, Side], minutes: float, every: float
) -> Iterator[dict[str, Any]]:
    """Yield one sample per interval."""
    before, start = look(conn), time.monotonic()
    empty = {name: table.bytes for name, table in before.tables.items()}
    last, finished = start, tally["finished"]
    while last - start < minutes * 60:
        time.sleep(max(0.0, last + every - time.monotonic()))
        durations = {name: values for side in sides for name, values in side.ask().items()}
        now, sample, total = time.monotonic(), look(conn), tally["finished"]
        jobs = max(1, total - finished)
        yield {
            "seconds": now - start,
            "finished": total,
            "rate": (total - finished) / (now - last),
            "backlog": sample.backlog,
            **{
                name: percentiles(durations.get(name, [])) for name in ("claim_ms", "finish_ms", "enqueue_ms")
            },
            "wal_a_job": (sample.wal - before.wal) / jobs,
            "tables": {name: table._asdict() for name, table in sample.tables.items()},
            "bytes_a_job": {n: (sample.tables[n].bytes - empty[n]) / max(1, total) for n in GROWING},
        }
        before, last, finished = sample, now, total


async def make_orgs(url: str, home: Path) -> list[UUID]:
    """Create the orgs."""
    orgs = [uuid4() for _ in range(ORGS)]
    async with make_app(url, home) as app:
        for org in orgs:
            await app.create_org(org, "bench")
    return orgs


def run(server: BenchServer, chosen: argparse.Namespace) -> dict[str, Any]:
    """Collect all samples; print each one."""
    url, samples = server.create("sustained"), []
    orgs = asyncio.run(make_orgs(url, server.home))
    tally = Tally(server.home / "tally")
    with (
        psycopg.connect(url, autocommit=True) as conn,
        both_sides(url, server.home, orgs, chosen.rate) as sides,
    ):
        for sample in watch(conn, tally, sides, chosen.minutes, chosen.every):
            samples.append(sample)
            print(as_line(sample), flush=True)
    return {
        "minutes": chosen.minutes,
        "orgs": ORGS,
        "server": server.version,
        "rate": samples[-1]["finished"] / samples[-1]["seconds"],
        "samples": samples,
    }


def main() -> int:
    """Parse the arguments, run, judge."""
    arguments = argparse.ArgumentParser(prog="sustained", description=__doc__)
    arguments.add_argument("--minutes", type=float, default=10.0)
    arguments.add_argument("--every", type=float, default=10.0, help="seconds between two looks")
    arguments.add_argument(
        "--rate", type=float, default=0.0, help="jobs a second; by default as many as drain"
    )
    arguments.add_argument("--json", type=Path, help="write the figures to this file")
    arguments.add_argument("--out", type=Path, help="write a page and its charts to this folder")
    arguments.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    arguments.add_argument("--enqueue", nargs=4, help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.work:
        asyncio.run(run_worker(chosen.work[0], Path(chosen.work[1])))
        return 0
    if chosen.enqueue:
        url, home, orgs, rate = chosen.enqueue
        asyncio.run(run_enqueuer(url, Path(home), [UUID(org) for org in json.loads(orgs)], float(rate)))
        return 0
    with open_bench_server(OPTIONS) as server:
        figures = run(server, chosen)
    findings = judge(figures["samples"])
    figures["flat"] = all(finding.flat for finding in findings) if findings else None
    figures["findings"] = [{**finding._asdict(), "flat": finding.flat} for finding in findings]
    print(as_verdict(findings, figures["flat"]))
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")
    if chosen.out:
        write(figures, findings, chosen.out)
    return 1 if figures["flat"] is False else 0


if __name__ == "__main__":
    sys.exit(main())
