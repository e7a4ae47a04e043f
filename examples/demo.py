"""The shortest way to see Duly at work: database, service and workers, and a real analysis over HTTP.

`./dev demo` then fills a living system, with the console to look at it and workers to kill, until Ctrl-C.
With `--once`, or where nobody looks, it ends after the result.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from world import papers
from world.application import make
from world.people import ORGS
from world.place import fresh_database
from world.town import HISTORY, Town, living

from duly import AsyncClient, Duly, Settings, errors
from duly.cli.options import LogLevel, write_logs
from duly.cli.serve import PORT, running, stop_signal
from duly.client import JobStatus

TEXTS = Path(__file__).parent / "texts"
_WIDTH = 30


async def once() -> None:
    """Start everything, have the texts analyzed, and end."""
    async with running(Duly(), port=_port()) as here:
        print(f"service   {here.url}", flush=True)
        await analyze(here.url, here.key)


async def stay() -> None:
    """The same, and then a town full of work, until Ctrl-C."""
    stop = stop_signal()
    town, told = asyncio.create_task(_live()), asyncio.create_task(stop.wait())
    await asyncio.wait([town, told], return_when=asyncio.FIRST_COMPLETED)
    if not town.done():
        print("\nstopping: workers give back what they hold", flush=True)
        town.cancel()
    with suppress(asyncio.CancelledError):
        await town


async def _live() -> None:
    settings = Settings.load()
    write_logs(settings, None, as_json=False, otherwise=LogLevel.ERROR)
    own = settings.database_url
    with nullcontext(own) if own else fresh_database(settings.home) as url:
        async with living(make(database_url=url), port=_port()) as town:
            print(f"service   {town.url}", flush=True)
            await town.load.begin(HISTORY)
            await analyze(town.url, town.keys.of[ORGS[0].org_id])
            say(town)
            await papers.bring(town.app)
            async with town.load.at_work():
                await asyncio.Event().wait()


def _port() -> int:
    """The usual one, or if somebody has that, any."""
    try:
        with socket.create_server(("127.0.0.1", PORT)):
            return PORT
    except OSError:
        return 0


async def analyze(url: str, key: str) -> None:
    """The analysis, from the outside."""
    async with AsyncClient(url, key) as client:
        sources = [{"name": path.name, "text": path.read_text("utf-8")} for path in sorted(TEXTS.iterdir())]
        job = await client.submit("analyze.run", {"sources": sources}, subject_id="demo")
        print(f"job       {job.job_id}, {len(sources)} texts")
        ended = await job.wait(timeout=60, on_progress=show)
        print(f"\nended     {ended.status} after {ended.partial_count} partial results")
        tell(await job.result())
    print(f"permalink {url}/results/{ended.result_id}", flush=True)


def say(town: Town) -> None:
    """Where to look."""
    print(
        f"\nConsole   {town.console}\n          (you look after the installation: see it live, kill a worker)"
    )
    print(
        f"Customer  {town.customer(ORGS[0].org_id)}\n          (you are {ORGS[0].name}: try your own texts)"
    )
    workers = ", ".join(f"{one.name} {one.process.pid}" for one in town.crew.members if one.process)
    print(f"Workers   {workers}\nCtrl-C ends all of it; the next start begins anew.", flush=True)


def show(seen: JobStatus) -> None:
    """How far it is."""
    done = int(seen.progress_percent / 100 * _WIDTH)
    start = "\r" if sys.stdout.isatty() else "\n"
    said = (
        f"{start}progress  [{'#' * done}{' ' * (_WIDTH - done)}] {seen.progress_percent:3.0f} % {seen.status}"
    )
    print(f"{said:<60}", end="", flush=True)


def tell(summary: dict[str, Any]) -> None:
    """A little of what was found."""
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
        asyncio.run(once() if "--once" in sys.argv[1:] or not sys.stdout.isatty() else stay())
    except errors.DulyError as error:
        sys.exit(f"error: {error}")
