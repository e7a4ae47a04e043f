"""`duly queue`, `duly workers` and `duly drain`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from duly.cli.application import run
from duly.cli.options import ActorName, AppName, AsJson, Reason, acting, number
from duly.cli.show import Columns, print_json, print_table
from duly.store.queues import Queue

group = typer.Typer(help="Queues.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(metavar="QUEUE", help="As in q:default.", show_default=False)]
Weight = Annotated[int, typer.Argument(help="Its share of the free slots, beside the others'.")]

_QUEUE: Columns = {
    "queue": "queue",
    "weight": "weight",
    "paused": "paused_at",
    "by": "paused_by",
    "reason": "pause_reason",
}
_ALERTS: Columns = {"queue": "queue", "alert depth": "alert_depth", "alert wait": "alert_wait"}
_COUNTS: Columns = {
    "queue": "queue",
    "waiting": "waiting",
    "scheduled": "scheduled",
    "running": "running",
    "oldest waits": "oldest_waiting_age",
    "paused": "paused_at",
}
_WORKER: Columns = {
    "worker": "worker_id",
    "name": "name",
    "state": "state",
    "running": lambda worker: f"{worker.running}/{worker.slots}",
    "queues": "queues",
    "version": "version",
    "started": "started_at",
    "heartbeat": "heartbeat_at",
}


@group.command("list")
def list_queues(app: AppName = None, as_json: AsJson = False) -> None:
    """Every queue, its weight, and who paused it."""
    found = run(app, lambda duly: duly.queues.stats())
    print_json({"queues": found}) if as_json else print_table(found, _QUEUE)


@group.command()
def stats(app: AppName = None, as_json: AsJson = False) -> None:
    """What waits, what is to come and what runs; counted up to 10000."""
    found = run(app, lambda duly: duly.queues.stats())
    print_json({"queues": found}) if as_json else print_table(found, _COUNTS)


@group.command()
def create(
    queue: Name,
    weight: Weight,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make a queue; workers take jobs from it when it is among theirs."""
    _show(
        run(app, lambda duly: duly.queues.create(queue, weight, actor=acting(actor), reason=reason)), as_json
    )


@group.command()
def pause(
    queue: Name, reason: Reason, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Start nothing from it until it is resumed."""
    _show(run(app, lambda duly: duly.queues.pause(queue, actor=acting(actor), reason=reason)), as_json)


@group.command()
def resume(
    queue: Name, reason: Reason, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Let its jobs start again."""
    _show(run(app, lambda duly: duly.queues.resume(queue, actor=acting(actor), reason=reason)), as_json)


@group.command()
def weight(
    queue: Name,
    weight: Weight,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Give it another share of the workers' free slots."""
    changed = run(app, lambda duly: duly.queues.set_weight(queue, weight, actor=acting(actor), reason=reason))
    _show(changed, as_json)


@group.command("set")
def set_alerts(
    queue: Name,
    reason: Reason,
    alert_depth: Annotated[
        str | None, typer.Option(help="More waiting jobs are an alert; none: as the settings say.")
    ] = None,
    alert_wait: Annotated[
        str | None, typer.Option(help="A longer wait is an alert, in seconds; none: as the settings say.")
    ] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Say when somebody is told of it; what is left out stays."""
    wanted: dict[str, Any] = {}
    if alert_depth is not None:
        wanted["depth"] = number(alert_depth, "--alert-depth", int)
    if alert_wait is not None:
        seconds = number(alert_wait.removesuffix("s"), "--alert-wait", float)
        wanted["wait"] = None if seconds is None else timedelta(seconds=seconds)
    changed = run(
        app, lambda duly: duly.queues.set_alerts(queue, **wanted, actor=acting(actor), reason=reason)
    )
    print_json(changed) if as_json else print_table([changed], _ALERTS)


def workers(app: AppName = None, as_json: AsJson = False) -> None:
    """The workers that have not said goodbye, and how many jobs each runs."""
    found = run(app, lambda duly: duly.queues.workers())
    print_json({"workers": found}) if as_json else print_table(found, _WORKER)


def drain(
    worker: Annotated[str, typer.Argument(metavar="WORKER", help="Its id, as `duly workers` shows it.")],
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have a worker drain: it takes nothing more, finishes or gives back its jobs, and ends."""
    asked = run(app, lambda duly: duly.queues.drain(worker, actor=acting(actor), reason=reason))
    print_json(asked) if as_json else print_table([asked], _WORKER)


def _show(queue: Queue, as_json: bool) -> None:
    print_json(queue) if as_json else print_table([queue], _QUEUE)
