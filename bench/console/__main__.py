"""Measure the console pages on a large database, and the load of open tabs on PostgreSQL.

    ./dev bench console [--jobs 100000] [--times 30] [--tabs 20] [--seconds 30] [--out docs/benchmarks]

An admin of the large org, and a platform operator for all orgs, request each page, one request at a time.
Tabs are event streams; all queries are counted in the server's own log.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

if __package__ in (None, ""):
    sys.path[0] = str(Path(__file__).resolve().parents[2])

import httpx
import psycopg
from bench.console.fill import fill
from bench.console.served import Ready, serve
from bench.console.tour import Stop

from duly.testing import DatabaseCluster

TARGET_MS, TARGET_QUERIES = 200.0, 1.0


class Figure(NamedTuple):
    """Times of one page, in milliseconds."""

    role: str
    name: str
    p50: float
    p95: float


class Tabs(NamedTuple):
    """Database load of open tabs."""

    what: str
    queries: float
    """Per second and tab."""


class Log(NamedTuple):
    """The server's log, with every statement while it records; the server truncates it when it gets large."""

    url: str
    file: Path

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Empty the log, then record all statements."""
        self.file.write_text("")
        self._all("'all'")
        try:
            yield
        finally:
            self._all("'none'")

    def queries(self) -> int:
        """Count the recorded statements, including those that begin and end transactions."""
        with self.file.open(encoding="utf-8", errors="replace") as lines:
            return sum(": statement: " in line or " execute " in line for line in lines)

    def _all(self, which: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as conn:
            conn.execute(f"alter system set log_statement = {which}")
            # Parameter values would make the log so large that it is truncated and statements are missed.
            conn.execute("alter system set log_parameter_max_length = 0")
            conn.execute("select pg_reload_conf()")


def main() -> None:
    """Measure, print, and write a page if requested."""
    parser = argparse.ArgumentParser(description="The console's pages.")
    parser.add_argument("--jobs", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--tabs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    with _server(chosen.jobs) as (ready, log):
        pages = asyncio.run(_pages(ready, chosen.times))
        admin_pages = {page.name for page in pages if page.role == "admin"}
        different = [stop.path for stop in ready.stops if stop.name in admin_pages]
        tabs = asyncio.run(_tabs(ready, log, different, chosen.tabs, chosen.seconds))
    page_text = report(chosen.jobs, chosen.tabs, pages, tabs)
    print(page_text)
    if chosen.json:
        figures = {"pages": [page._asdict() for page in pages], "tabs": [one._asdict() for one in tabs]}
        chosen.json.write_text(json.dumps(figures, indent=1))
    if chosen.out:
        chosen.out.joinpath("console.md").write_text(page_text)


async def _pages(ready: Ready, times: int) -> list[Figure]:
    found = []
    for role, key in ready.keys.items():
        async with _visitor(ready, key) as visitor:
            for stop in ready.stops:
                figure = await _page(visitor, role, stop, times)
                if figure:
                    found.append(figure)
                    print(f"{figure.p95:7.1f} ms  {role:8}  {stop.name}", flush=True)
    return found


async def _page(visitor: httpx.AsyncClient, role: str, stop: Stop, times: int) -> Figure | None:
    took = []
    for number in range(times + 2):
        began = time.perf_counter()
        answer = await visitor.get(stop.path)
        if answer.status_code in (403, 404):
            return None  # not for them: a page of the installation, or of an org that was not chosen
        answer.raise_for_status()
        if number > 1:
            took.append((time.perf_counter() - began) * 1000)
    return Figure(role, stop.name, statistics.median(took), statistics.quantiles(took, n=20)[18])


async def _tabs(ready: Ready, log: Log, different: list[str], tabs: int, seconds: float) -> list[Tabs]:
    """Measure tabs that all show the overview, then tabs that each show another page."""
    plans = {
        "all on the overview": ["/console"] * tabs,
        "each on another page": [different[n % len(different)] for n in range(tabs)],
    }
    found = []
    for what, paths in plans.items():
        async with _visitor(ready, ready.keys["admin"]) as visitor:
            open_tabs = [asyncio.create_task(_watch(visitor, path)) for path in paths]
            await asyncio.sleep(min(5.0, seconds))
            with log.recording():
                await asyncio.sleep(seconds)
            counted = log.queries()
            for tab in open_tabs:
                tab.cancel()
            await asyncio.gather(*open_tabs, return_exceptions=True)
        found.append(Tabs(what, counted / seconds / tabs))
        print(f"{found[-1].queries:7.3f} queries per second and tab, {what}", flush=True)
    return found


async def _watch(visitor: httpx.AsyncClient, path: str) -> None:
    async with visitor.stream("GET", path, headers={"accept": "text/event-stream"}) as stream:
        stream.raise_for_status()
        async for _ in stream.aiter_bytes():
            pass


def _visitor(ready: Ready, key: str) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None)
    headers = {"authorization": f"Bearer {key}"}
    base = f"http://127.0.0.1:{ready.port}"
    return httpx.AsyncClient(base_url=base, headers=headers, timeout=30, limits=limits)


@contextmanager
def _server(jobs: int) -> Iterator[tuple[Ready, Log]]:
    from duly.apps.documents.schema import SCHEMA

    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, 0o755)  # noqa: PTH101 - the server is another user
        cluster = DatabaseCluster(Path(home) / "server")
        with cluster.fresh(schemas=[SCHEMA]) as database:
            with psycopg.connect(database.direct_url, autocommit=True) as conn:
                stock = fill(conn, jobs)
            parent_end, child_end = multiprocessing.get_context("spawn").Pipe()
            process = multiprocessing.get_context("spawn").Process(
                target=serve, args=(database.direct_url, stock, home, child_end), daemon=True
            )
            process.start()
            child_end.close()  # should it die, there is nothing more to be received
            try:
                log = next(Path(home).rglob("*.log"))
                yield parent_end.recv(), Log(database.direct_url, log)
            finally:
                with suppress(OSError):  # it may be gone
                    parent_end.send("stop")
                process.join(10)
        cluster.close(wait=True)


def report(jobs: int, tabs: int, pages: list[Figure], cost: list[Tabs]) -> str:
    """Return the report in Markdown."""
    slowest = max(pages, key=lambda page: page.p95)
    rows = [f"| {page.role} | `{page.name}` | {page.p50:.1f} | {page.p95:.1f} |" for page in pages]
    lines = [f"- {one.what}: {one.queries:.2f} queries per second and tab" for one in cost]
    return "\n".join((
        "# The console",
        "",
        f"Written by `./dev bench console` with {jobs:,} jobs, half of them of one org. Each page was",
        "requested over HTTP, one request at a time: by an admin of that org, and by a platform operator for",
        "all orgs. The slowest page is",
        f"`{slowest.name}`, {slowest.p95:.0f} ms at p95; the target is {TARGET_MS:.0f} ms.",
        "",
        "| role | page | p50 ms | p95 ms |",
        "|---|---|---|---|",
        *rows,
        "",
        f"{tabs} live tabs; statements are counted in the server's log, including those that begin and end",
        f"transactions. The target is less than {TARGET_QUERIES:.0f} query per second and tab:",
        "",
        *lines,
        "",
    ))  # fmt: skip


if __name__ == "__main__":
    main()
