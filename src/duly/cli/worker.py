"""`duly worker`: a parent process that supervises worker processes."""

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

from duly.app import Duly
from duly.cli.app_loader import load_app
from duly.cli.exit_codes import ExitCode
from duly.cli.garbage_collector import tune_for_worker
from duly.cli.options import AppName, AsJson, LogLevelOption, write_logs
from duly.cli.output import print_json
from duly.cli.supervisor import DRAINED, Supervisor
from duly.cli.worker_metrics import Monitor, serve_metrics
from duly.core.errors import ConfigurationError
from duly.settings import Settings
from duly.worker.worker import Worker


def worker(
    app: AppName = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="Start this many processes.")] = 1,
    queues: Annotated[
        str | None, typer.Option(help="Claim jobs from these queues, separated by commas.")
    ] = None,
    slots: Annotated[int | None, typer.Option(help="Run this many jobs at a time in each process.")] = None,
    threads: Annotated[int | None, typer.Option(help="Run this many sync handlers at a time.")] = None,
    isolated: Annotated[int | None, typer.Option(help="Run this many isolated handlers at a time.")] = None,
    drain: Annotated[float | None, typer.Option(help="Wait this many seconds for jobs to finish.")] = None,
    name: Annotated[str | None, typer.Option(help="Name the workers.", show_default="host:pid")] = None,
    metrics_port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Serve /metrics, /livez and /readyz on this port."),
    ] = None,
    metrics_host: Annotated[
        str | None, typer.Option(help="Serve metrics on this address.", show_default="127.0.0.1")
    ] = None,
    log_level: LogLevelOption = None,
    as_json: AsJson = False,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C, then drain.

    A second signal kills. A process that dies is replaced, unless an operator has drained it with
    `duly workers drain`; the command ends when all processes are drained.
    """
    if app is None:
        load_app(app, job_types=True)
    given = {"queues": queues, "slots": slots, "threads": threads, "isolated": isolated, "drain": drain}
    options = {key: value for key, value in {**given, "name": name}.items() if value is not None}
    settings = Settings.load(metrics_port=metrics_port, metrics_host=metrics_host)
    write_logs(settings, log_level, as_json=as_json)
    command = [sys.executable, "-m", "duly.cli", "worker-process", f"--app={app}"]
    command += [f"--options={json.dumps(options)}", *(["--json"] if as_json else [])]
    command += [f"--log-level={log_level}"] if log_level else []
    raise typer.Exit(asyncio.run(_supervise(command, processes, settings, as_json=as_json)))


async def _supervise(command: list[str], processes: int, settings: Settings, *, as_json: bool) -> int:
    if settings.metrics_port is None:
        return await Supervisor(command, processes).run()
    monitor = Monitor(settings.metrics_host, settings.metrics_port, processes)
    supervisor = Supervisor([*command, "--monitored"], processes, environment=monitor.environment)
    async with monitor.listening(lambda: supervisor.pids) as url:
        if as_json:
            print_json({"event": "metrics", "url": url})
        else:
            print(f"metrics {url}", flush=True)
        return await supervisor.run()


def worker_process(
    options: Annotated[str, typer.Option(hidden=True)] = "{}",
    monitored: Annotated[bool, typer.Option("--monitored", hidden=True)] = False,
    app: AppName = None,
    log_level: LogLevelOption = None,
    as_json: AsJson = False,
) -> None:
    """Run one worker process."""
    loaded = load_app(app, job_types=True)
    write_logs(loaded.settings, log_level, as_json=as_json)
    asyncio.run(_work(loaded, _worker_options(options), monitored=monitored, as_json=as_json))


async def _work(app: Duly, options: dict[str, Any], *, monitored: bool, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    lifeline = _take_lifeline()
    loop.add_reader(lifeline, _parent_ended, loop, lifeline, stop)
    worker = app.worker(when_stuck=lambda: os._exit(ExitCode.INTERNAL), **options)
    async with app, serve_metrics(app, worker) if monitored else nullcontext(), worker:
        await worker.listening.wait()
        tune_for_worker()
        _print_ready(worker, as_json=as_json)
        await _wait_for_any(stop, worker.retired)
    sys.stdout.flush()
    sys.stderr.flush()
    # A thread that a handler never leaves must not keep the process alive.
    os._exit(ExitCode.OK if stop.is_set() else DRAINED)


async def _wait_for_any(*events: asyncio.Event) -> None:
    waiting = [asyncio.create_task(event.wait()) for event in events]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)


def _take_lifeline() -> int:
    """Return stdin under another number, so that no subprocess of a handler inherits or reads it."""
    lifeline, empty = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(empty, 0)
    os.close(empty)
    return lifeline


def _parent_ended(loop: asyncio.AbstractEventLoop, lifeline: int, stop: asyncio.Event) -> None:
    """Stop: the parent never writes, so a readable lifeline means that the parent has ended."""
    loop.remove_reader(lifeline)
    stop.set()


def _print_ready(worker: Worker, *, as_json: bool) -> None:
    if as_json:
        ids = {"event": "ready", "pid": os.getpid(), "worker_id": worker.worker_id}
        print_json({**ids, "queues": worker.options.queues, "slots": worker.options.slots})
    else:
        print(f"ready {worker.worker_id}", flush=True)


def _worker_options(text: str) -> dict[str, Any]:
    options: dict[str, Any] = json.loads(text)
    if "queues" in options:
        options["queues"] = tuple(part.strip() for part in options["queues"].split(",") if part.strip())
    if "drain" in options:
        if options["drain"] < 0:
            raise ConfigurationError(
                f"drain must not be negative, got {options['drain']:g} s", field="drain", fix="use 0 or more"
            )
        options["drain"] = timedelta(seconds=options["drain"])
    return options
