"""Compare bulk enqueue with a bare `insert ... select unnest` of the same rows, alternating, in one run.

The enqueue covers everything from Python arguments to handles: validation, limits, secret detection,
contract, key, ledger, events, queue row, row level security. The bare insert writes the same rows into
copies of the same tables with the same indexes and partitions, without row level security, functions or
checks; its arrays are built before the clock starts. The server-side insert reads its arrays from temporary
tables, so only writing rows and indexes is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

import psycopg

from duly import Actor, Duly, context
from duly.embedded import open_server

COPIED = ("job_records", "key_ledger", "ready")
"""The event of a whole call is one row."""


async def main() -> int:
    """Measure, print, and fail below the target."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--jobs", type=int, default=10_000)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--json", type=Path)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server = open_server(Path(home, "pg"))
        app = Duly(database_url=server.dsn(), blobs_url=str(Path(home, "blobs")))
        app.migrate()
        async with app:
            figures = await measure(app, server.dsn(), chosen.jobs, chosen.rounds)
        server.wait_until_stopped()
    report(figures, chosen.jobs)
    if chosen.json:
        chosen.json.write_text(json.dumps(figures, indent=2))
    return 0 if figures["ratio"] >= 0.6 else 1


async def measure(app: Duly, dsn: str, jobs: int, rounds: int) -> dict[str, Any]:
    """Return the jobs per second of both, measured alternately."""

    @app.job("bench.noop")
    async def noop(number: int, region: str) -> None: ...

    org = uuid.uuid4()
    await app.create_org(org, "bench")
    rates: dict[str, list[float]] = {"ours": [], "floor": [], "server floor": []}

    async def ours(start: int) -> None:
        calls = [noop.call(start + n, "DE") for n in range(jobs)]
        assert all(handle.created for handle in await app.enqueue_many(calls))

    with context(org_id=org, actor=Actor.system("bench")), psycopg.connect(dsn, autocommit=True) as conn:
        await ours(-jobs)
        make_floor(conn)
        for turn in range(rounds):
            statements = bare_inserts(conn, jobs)
            rates["floor"].append(jobs / timed_inserts(conn, statements))
            rates["server floor"].append(jobs / timed_inserts(conn, within_the_server(conn, statements)))
            start = time.perf_counter()
            await ours(turn * jobs)
            rates["ours"].append(jobs / (time.perf_counter() - start))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    return {"rates": rates, "median": medians, "ratio": medians["ours"] / medians["floor"]}


def make_floor(conn: psycopg.Connection[Any]) -> None:
    """Create copies of the tables and indexes with one partition, as for the rows of a day."""
    conn.execute("create schema floor")
    for table in COPIED:
        partitioned = table == "job_records"
        by = "partition by range (job_id)" if partitioned else ""
        conn.execute(f"create table floor.{table} (like duly.{table} including all) {by}")
        if partitioned:
            conn.execute(f"create table floor.{table}_all partition of floor.{table} default")


def bare_inserts(conn: psycopg.Connection[Any], jobs: int) -> list[tuple[str, list[list[Any]]]]:
    """Return inserts of the rows of the last enqueue: a statement per table, an array per column."""
    statements = []
    for table in COPIED:
        columns = [
            (name, kind)
            for name, kind in conn.execute(
                "select attname, format_type(atttypid, -1) from pg_attribute "
                "where attrelid = %s::regclass and attnum > 0",
                [f"duly.{table}"],
            )
        ]
        names = ", ".join(name for name, _ in columns)
        arrays = ", ".join(f"%s::{kind}[]" for _, kind in columns)
        text = ", ".join(f"{name}::text" for name, _ in columns)
        rows = conn.execute(f"select {text} from duly.{table} order by job_id desc limit {jobs}").fetchall()
        values = [list(column) for column in zip(*rows, strict=True)]
        statements.append((f"insert into floor.{table} ({names}) select * from unnest({arrays})", values))
    return statements


def within_the_server(
    conn: psycopg.Connection[Any], statements: list[tuple[str, list[list[Any]]]]
) -> list[tuple[str, list[list[Any]]]]:
    """Return the same inserts with arrays from temporary tables."""
    moved: list[tuple[str, list[list[Any]]]] = []
    for number, (statement, values) in enumerate(statements):
        insert, arrays = statement.split(" select * from unnest(")
        columns = [f"{array} as c{n}" for n, array in enumerate(arrays.removesuffix(")").split(", "))]
        conn.execute(f"drop table if exists pg_temp.arrays{number}")
        conn.execute(f"create temporary table arrays{number} as select {', '.join(columns)}", values)
        names = ", ".join(f"a.c{n}" for n in range(len(columns)))
        moved.append((f"{insert} select u.* from arrays{number} a, unnest({names}) u", []))
    return moved


def timed_inserts(conn: psycopg.Connection[Any], statements: list[tuple[str, list[list[Any]]]]) -> float:
    """Return the seconds for all inserts in one transaction, into empty tables."""
    conn.execute("truncate " + ", ".join(f"floor.{table}" for table in COPIED))
    start = time.perf_counter()
    with conn.transaction():
        for statement, values in statements:
            conn.execute(statement, values)
    return time.perf_counter() - start


def report(figures: dict[str, Any], jobs: int) -> None:
    """Print the table."""
    print(f"{jobs} jobs a call, jobs/s, median of {len(figures['rates']['ours'])} rounds")
    for name, value in figures["median"].items():
        print(f"  {name:<12} {value:>10,.0f}   {' '.join(f'{r:,.0f}' for r in figures['rates'][name])}")
    print(f"  ours / floor {figures['ratio']:>10.2f}   (at least 0.60)")
    print(f"  to the server's {figures['median']['ours'] / figures['median']['server floor']:>7.2f}")


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
