"""`duly worker`: a parent that supervises, and processes that work."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import nullcontext
from datetime import timedelta
from typing import Annotated, Any

import typer

from duly.cli.application import find
from duly.cli.exits import ExitCode
from duly.cli.monitored import Monitor, telling
from duly.cli.options import AppName, AsJson
from duly.cli.show import print_json
from duly.cli.supervisor import RETIRED, Supervisor
from duly.cli.verbosity import HowMuch, write_logs
from duly.model.errors import ConfigurationError
from duly.settings import Settings
from duly.wiring import Duly
from duly.worker.worker import Worker


def worker(
    app: AppName = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="How many processes work.")] = 1,
    queues: Annotated[str | None, typer.Option(help="Queues to take jobs from, by commas.")] = None,
    slots: Annotated[int | None, typer.Option(help="Jobs a process runs at a time.")] = None,
    threads: Annotated[int | None, typer.Option(help="Of these, handlers that are not async.")] = None,
    isolated: Annotated[
        int | None, typer.Option(help="Of these, handlers in processes of their own.")
    ] = None,
    drain: Annotated[float | None, typer.Option(help="Seconds to finish in when told to stop.")] = None,
    name: Annotated[
        str | None, typer.Option(help="What the workers are called; by default host:pid.")
    ] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Tell /metrics, /livez and /readyz of all processes here."),
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option(help="The address of that port; by default 127.0.0.1.")
    ] = None,
    log_level: HowMuch = None,
    as_json: AsJson = False,
) -> None:
    """Do jobs until SIGTERM or Ctrl-C, then drain; a second signal kills. A process that dies is replaced.

    One that an operator has asked to drain is not; when all have, this ends, too.
    """
    if app is None:
        find(app, needed=True)
    given = {"queues": queues, "slots": slots, "threads": threads, "isolated": isolated, "drain": drain}
    choices = {key: value for key, value in {**given, "name": name}.items() if value is not None}
    settings = Settings.load(metrics_port=metrics_port, metrics_host=metrics_host)
    write_logs(settings, log_level, as_json=as_json)
    again = [sys.executable, "-m", "duly.cli", "worker-process", f"--app={app}"]
    again += [f"--choices={json.dumps(choices)}", *(["--json"] if as_json else [])]
    again += [f"--log-level={log_level}"] if log_level else []
    raise typer.Exit(asyncio.run(_supervise(again, processes, settings, as_json=as_json)))


async def _supervise(again: list[str], processes: int, settings: Settings, *, as_json: bool) -> int:
    if settings.metrics_port is None:
        return await Supervisor(again, processes).run()
    monitor = Monitor(settings.metrics_host, settings.metrics_port, processes)
    parent = Supervisor([*again, "--monitored"], processes, environment=monitor.environment)
    async with monitor.listening(lambda: parent.pids) as address:
        if as_json:
            print_json({"event": "metrics", "url": address})
        else:
            print(f"metrics {address}", flush=True)
        return await parent.run()


def worker_process(
    choices: Annotated[str, typer.Option(hidden=True)] = "{}",
    monitored: Annotated[bool, typer.Option("--monitored", hidden=True)] = False,
    app: AppName = None,
    log_level: HowMuch = None,
    as_json: AsJson = False,
) -> None:
    """One of the processes."""
    found = find(app, needed=True)
    write_logs(found.settings, log_level, as_json=as_json)
    asyncio.run(_work(found, _read(choices), monitored=monitored, as_json=as_json))


async def _work(app: Duly, choices: dict[str, Any], *, monitored: bool, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    lifeline = _take_lifeline()
    loop.add_reader(lifeline, _hear, loop, lifeline, stop)
    working = app.worker(when_stuck=lambda: os._exit(ExitCode.INTERNAL), **choices)
    async with app, telling(app, working) if monitored else nullcontext(), working:
        await working.listening.wait()
        _say_ready(working, as_json=as_json)
        await _until_any(stop, working.retired)
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that a handler never leaves must not keep us.
    os._exit(ExitCode.OK if stop.is_set() else RETIRED)


async def _until_any(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)


def _take_lifeline() -> int:
    """Our stdin under another number, so that nobody whom a handler starts inherits or reads it."""
    lifeline, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return lifeline


def _hear(loop: asyncio.AbstractEventLoop, lifeline: int, stop: asyncio.Event) -> None:
    """The parent never writes: what there is to read is its end."""
    loop.remove_reader(lifeline)
    stop.set()


def _say_ready(working: Worker, *, as_json: bool) -> None:
    options = working.options
    if as_json:
        told = {"event": "ready", "pid": os.getpid(), "worker_id": working.worker_id}
        print_json({**told, "queues": options.queues, "slots": options.slots})
    else:
        print(f"ready {working.worker_id}", flush=True)


def _read(choices: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(choices)
    if "queues" in found:
        found["queues"] = tuple(part.strip() for part in found["queues"].split(",") if part.strip())
    if "drain" in found:
        if found["drain"] < 0:
            raise ConfigurationError("less than zero", field="drain", fix="give seconds, 0 or more")
        found["drain"] = timedelta(seconds=found["drain"])
    return found
