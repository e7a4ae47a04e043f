"""A worker of one variant: connects, waits for the start, drains the queue and reports its rate."""

from __future__ import annotations

import asyncio
import logging
import re
import sys
import time
from dataclasses import dataclass
from functools import partial

from duly import Duly
from duly.cli.options import LogLevel, write_logs
from duly.db.statements import Statement, statement
from duly.worker import claim as claims
from duly.worker import settle_store as endings

log = logging.getLogger("bench")
_EVENT = re.compile(r"event as \(\s*insert into duly\.event_log \(.*?\n\), ", re.DOTALL)


@dataclass(frozen=True)
class Arm:
    """What a variant turns on."""

    events: bool = True
    metrics: bool = False
    logs: bool = False
    talks: bool = False


ARMS = {
    "bare": Arm(events=False),
    "events": Arm(),
    "all": Arm(metrics=True, logs=True),
    "talking": Arm(metrics=True, logs=True, talks=True),
}


async def work(arm: Arm, url: str, blobs: str, jobs: int) -> None:
    """Run the process: report `here`, then time the drain from its first handler to its last commit."""
    app = Duly(database_url=url, blobs_url=blobs)
    if arm.logs:
        write_logs(app.settings, LogLevel.INFO, as_json=True)
    if not arm.events:
        _leave_out_events()
    began = used = 0.0

    @app.job("bench.noop")
    async def noop(number: int) -> None:
        nonlocal began, used
        if not began:
            began, used = time.perf_counter(), time.process_time()
        if arm.talks:
            log.info("number %d is done", number)

    async with app:
        print("here", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        async with app.worker(slots=1_000, metrics=arm.metrics) as worker:
            await worker.loop_events.wait("settled", jobs)
            seconds, busy = time.perf_counter() - began, time.process_time() - used
    print(jobs / seconds, busy / jobs * 1e6, flush=True)


def _leave_out_events() -> None:
    """Remove the events from the statements of claims and completions."""
    for module in (claims, endings):
        vars(module)["statement"] = partial(_without_events, {"jobs/claim", "jobs/complete"})


def _without_events(changed: set[str], name: str) -> Statement:
    text = statement(name)
    if name not in changed:
        return text
    left, found = _EVENT.subn("", text)
    if found != 1:
        raise RuntimeError(f"{name} has {found} places that write events")
    return Statement(left, name)
