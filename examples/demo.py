"""The shortest way to see Duly at work: database, service and worker, and a real analysis over HTTP.

`./dev demo` stays up for a look around; with `--once`, or where nobody looks, it ends after the result.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from duly import AsyncClient, Duly, errors
from duly.cli.serve import PORT, told_to_stop
from duly.cli.up import Running, running
from duly.remote import JobStatus

TEXTS = Path(__file__).parent / "texts"
_WIDTH = 30


async def main(*, once: bool) -> None:
    """Start everything, have the texts analyzed, say what to click."""
    stop = told_to_stop()
    app = Duly()
    try:
        async with running(app, port=PORT) as here:
            await look(here, stop, once=once)
    except errors.ConfigurationError as error:
        if error.field != "port":
            raise
        async with running(app, port=0) as here:  # somebody has that one
            await look(here, stop, once=once)


async def look(here: Running, stop: asyncio.Event, *, once: bool) -> None:
    """The analysis, from the outside."""
    print(f"service   {here.url}", flush=True)
    async with AsyncClient(here.url, here.key) as client:
        sources = [{"name": path.name, "text": path.read_text("utf-8")} for path in sorted(TEXTS.iterdir())]
        job = await client.submit("analyze.run", {"sources": sources}, subject_id="demo")
        print(f"job       {job.job_id}, {len(sources)} texts")
        ended = await job.wait(timeout=60, on_progress=show)
        print(f"\nended     {ended.status} after {ended.partial_count} partial results")
        tell(await job.result())
    print(f"permalink {here.url}/results/{ended.result_id}")
    if once:
        return
    print(f"\nOpen      {here.login}\n          (log in with the key it brings, then try your own texts)")
    print(f"Progress  {here.url}/jobs/{job.job_id}\nCtrl-C ends it; what was done is kept.", flush=True)
    await stop.wait()


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
        asyncio.run(main(once="--once" in sys.argv[1:] or not sys.stdout.isatty()))
    except errors.DulyError as error:
        sys.exit(f"error: {error}")
