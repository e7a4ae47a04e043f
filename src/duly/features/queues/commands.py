"""`duly queues`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

from duly.app import Duly
from duly.cli.command import Group, Rows
from duly.cli.options import Change, argument, number_option
from duly.cli.output import columns
from duly.features.limits.models import UNCHANGED
from duly.features.queues.models import Queue

queues = Group("queues", "Manage queues.")
QueueName = Annotated[str, argument("Select the queue, as in q:default.", "QUEUE")]
Weight = Annotated[int, argument("Set the share of free slots, relative to other queues.")]


@queues.command("list", columns=columns("queue", "weight", "paused_at", "paused_by", reason="pause_reason"))
async def list_queues(duly: Duly) -> Rows:
    """List the queues with their weights and pauses."""
    return {"queues": await duly.queues.stats()}


@queues.command(
    columns={
        **columns("queue", queued="waiting", scheduled="scheduled", running="running"),
        **columns("paused_at", oldest="oldest_waiting_age"),
    }
)
async def stats(duly: Duly) -> Rows:
    """Count queued, scheduled and running jobs, up to 10000 each."""
    return {"queues": await duly.queues.stats()}


@queues.command()
async def create(duly: Duly, queue: QueueName, weight: Weight, change: Change) -> Queue:
    """Create a queue; workers take its jobs if they are started for it."""
    return await duly.queues.create(queue, weight, **change)


@queues.command()
async def pause(duly: Duly, queue: QueueName, change: Change) -> Queue:
    """Pause a queue; none of its jobs starts until it is resumed."""
    return await duly.queues.pause(queue, **change)


@queues.command()
async def resume(duly: Duly, queue: QueueName, change: Change) -> Queue:
    """Resume a paused queue."""
    return await duly.queues.resume(queue, **change)


@queues.command("weight")
async def set_weight(duly: Duly, queue: QueueName, weight: Weight, change: Change) -> Queue:
    """Set the share of the workers' free slots that a queue gets."""
    return await duly.queues.set_weight(queue, weight, **change)


def _seconds(text: str) -> timedelta:
    return timedelta(seconds=float(text.removesuffix("s")))


@queues.command("set")
async def set_alerts(
    duly: Duly,
    queue: QueueName,
    change: Change,
    depth: Annotated[
        Any, number_option("--alert-depth", "Alert above so many queued jobs; none for the default.")
    ] = UNCHANGED,
    wait: Annotated[
        Any, number_option("--alert-wait", "Alert above so many seconds; none for the default.", _seconds)
    ] = UNCHANGED,
) -> Queue:
    """Set the alert thresholds of a queue; omitted ones stay."""
    return await duly.queues.set_alerts(queue, depth=depth, wait=wait, **change)
