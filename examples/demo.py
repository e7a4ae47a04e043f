"""Run Duly with a database, a service and workers, and analyze texts over HTTP.

`./dev demo` then runs a system with customers, the console and workers to kill, until Ctrl-C. With
`--once`, or without a terminal, it ends after the result.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from demo_app import documents
from demo_app.application import create_app
from demo_app.customers import ORGS
from demo_app.database import fresh_database
from demo_app.system import INITIAL_JOBS, DemoSystem, running_system

from duly import AsyncClient, Duly, Settings, errors
from duly.cli.options import LogLevel, write_logs
from duly.cli.serve import PORT, running, stop_signal
from duly.client import JobStatus

TEXTS = Path(__file__).parent / "texts"
_WIDTH = 30


async def run_once() -> None:
    """Start everything, analyze the texts, and stop."""
    async with running(Duly(), port=_port()) as service:
        print(f"service   {service.url}", flush=True)
        await analyze(service.url, service.key)


async def run_until_stopped() -> None:
    """Do the same, then run the demo system until Ctrl-C."""
    stop = stop_signal()
    system, stopped = asyncio.create_task(_run_system()), asyncio.create_task(stop.wait())
    await asyncio.wait([system, stopped], return_when=asyncio.FIRST_COMPLETED)
    if not system.done():
        print("\nstopping: workers return their jobs", flush=True)
        system.cancel()
    with suppress(asyncio.CancelledError):
        await system


async def _run_system() -> None:
    settings = Settings.load()
    write_logs(settings, None, as_json=False, otherwise=LogLevel.ERROR)
    url_setting = settings.database_url
    with nullcontext(url_setting) if url_setting else fresh_database(settings.home) as url:
        async with running_system(create_app(database_url=url), port=_port()) as system:
            print(f"service   {system.url}", flush=True)
            await system.load.fill(INITIAL_JOBS)
            await analyze(system.url, system.keys.of[ORGS[0].org_id])
            print_links(system)
            await documents.add_documents(system.app)
            async with system.load.running():
                await asyncio.Event().wait()


def _port() -> int:
    """Return the default port, or 0 for any port if it is taken."""
    try:
        with socket.create_server(("127.0.0.1", PORT)):
            return PORT
    except OSError:
        return 0


async def analyze(url: str, key: str) -> None:
    """Submit the analysis over HTTP and print its result."""
    async with AsyncClient(url, key) as client:
        sources = [{"name": path.name, "text": path.read_text("utf-8")} for path in sorted(TEXTS.iterdir())]
        job = await client.submit("analyze.run", {"sources": sources}, subject_id="demo")
        print(f"job       {job.job_id}, {len(sources)} texts")
        ended = await job.wait(timeout=60, on_progress=print_progress)
        print(f"\nended     {ended.status} after {ended.partial_count} partial results")
        print_summary(await job.result())
    print(f"permalink {url}/results/{ended.result_id}", flush=True)


def print_links(system: DemoSystem) -> None:
    """Print the links to open."""
    print(f"\nConsole   {system.console}\n          (as the platform operator: watch live, kill a worker)")
    customer = ORGS[0]
    print(f"Customer  {system.customer(customer.org_id)}\n          (as {customer.name}: analyze texts)")
    processes = system.workers.processes
    workers = ", ".join(f"{worker.name} {worker.process.pid}" for worker in processes if worker.process)
    print(
        f"Workers   {workers}\nCtrl-C stops everything; the next start begins with an empty database.",
        flush=True,
    )


def print_progress(job: JobStatus) -> None:
    """Print the progress of the job."""
    done = int(job.progress_percent / 100 * _WIDTH)
    start = "\r" if sys.stdout.isatty() else "\n"
    line = (
        f"{start}progress  [{'#' * done}{' ' * (_WIDTH - done)}] {job.progress_percent:3.0f} % {job.status}"
    )
    print(f"{line:<60}", end="", flush=True)


def print_summary(summary: dict[str, Any]) -> None:
    """Print an excerpt of the result."""
    languages = ", ".join(
        f"{one['language']} {one['share']:.0%}" for one in summary["languages"] if one["share"] > 0.01
    )
    print(f"languages {languages}\nterms     {', '.join(one['term'] for one in summary['terms'][:6])}")
    for pair in summary["duplicates"]["items"][:1]:
        print(f"alike     {pair['first']} and {pair['second']}: {pair['likeness']:.0%}")
    for event in summary["timeline"]["items"][:3]:
        print(f"timeline  {event['date']}  {event['around']}")


if __name__ == "__main__":
    try:
        asyncio.run(
            run_once() if "--once" in sys.argv[1:] or not sys.stdout.isatty() else run_until_stopped()
        )
    except errors.DulyError as error:
        sys.exit(f"error: {error}")
