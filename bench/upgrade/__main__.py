"""Upgrade a database of 0.9 with many jobs while clients enqueue and read, and report how long those wait.

The clients call what those of 0.9 call. Afterwards the idempotency keys move to their new table.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.growth.fill import fill_release_0_9, make_orgs, tidy

from duly.db.migrate import migrate, migrations
from duly.embedded import open_server

_POLICY = {"queue": "q:default", "priority": 0, "category": "default", "ledger_ttl": 3600}
_POLICY |= {"retry": {"max_attempts": 5}}
_MOVED_KEYS = 1_000
Connection = psycopg.Connection[Any]


class Probe:
    """Repeats a statement on a connection of its own, and keeps how long each call takes."""

    def __init__(self, url: str, call: Callable[[Connection], object]) -> None:
        self._url, self._call = url, call
        self._stop = threading.Event()
        self.seconds: list[float] = []
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Probe:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with psycopg.connect(self._url, autocommit=True) as conn:
            while not self._stop.wait(0.002):
                start = time.perf_counter()
                self._call(conn)
                self.seconds.append(time.perf_counter() - start)


def enqueue(org: uuid.UUID) -> Callable[[Connection], object]:
    """Return the enqueue of a client of 0.9."""

    def call(conn: Connection) -> object:
        job = {
            "job_type": "bench.noop",
            "policy": 0,
            "actor_type": "user",
            "actor_id": "u",
            "request_id": "r",
        }
        job |= {"correlation_id": "r", "payload": {"n": uuid.uuid4().hex}}
        return conn.execute(
            "select * from duly.enqueue_jobs(%s, %s::jsonb, %s::json)",
            [org, json.dumps([_POLICY]), json.dumps([job])],
        ).fetchall()

    return call


def read(org: uuid.UUID) -> Callable[[Connection], object]:
    """Return the list of the newest jobs."""
    query = "select status from duly.jobs where org_id = %s order by job_id desc limit 20"
    return lambda conn: conn.execute(query, [org]).fetchall()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="./dev bench upgrade", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--jobs", type=int, default=1_000_000, help="ended jobs in the database")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory(prefix="duly-bench-") as home:
        server = open_server(Path(home, "pg"))
        url = server.dsn()
        migrate(url, upto=migrations()[0].version)
        orgs = make_orgs(url, 20)
        fill_release_0_9(url, orgs, options.jobs, print)
        tidy(url)
        figures["upgrade"] = measure("upgrade", url, orgs[0], lambda: migrate(url))
        with psycopg.connect(url, autocommit=True) as conn:
            figures["keys"] = measure("moving the keys", url, orgs[0], lambda: move_keys(conn))
        server.wait_until_stopped()
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2), encoding="utf-8")


def move_keys(conn: Connection) -> None:
    """Move all keys, as maintenance does in batches."""
    while conn.execute("select duly.enable_lean_records(%s)", [_MOVED_KEYS]).fetchone() != (True,):
        pass


def measure(name: str, url: str, org: uuid.UUID, work: Callable[[], object]) -> dict[str, Any]:
    """Print and return how long the work takes, and what calls take meanwhile."""
    with Probe(url, enqueue(org)) as enqueues, Probe(url, read(org)) as reads:
        threading.Event().wait(1)
        start = time.perf_counter()
        work()
        figures: dict[str, Any] = {"seconds": time.perf_counter() - start}
    print(f"{name}: {figures['seconds']:.2f} s")
    for what, probe in (("enqueue", enqueues), ("list of 20 jobs", reads)):
        median, longest = statistics.median(probe.seconds) * 1000, max(probe.seconds) * 1000
        figures[what] = {"calls": len(probe.seconds), "median_ms": median, "longest_ms": longest}
        print(
            f"  {what:<16} {len(probe.seconds):>6,} calls, median {median:.1f} ms, longest {longest:.0f} ms"
        )
    return figures


if __name__ == "__main__":
    main()
