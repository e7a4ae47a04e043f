"""`duly workers`."""

from __future__ import annotations

from typing import Annotated

from duly.app import Duly
from duly.cli.command import Group, Rows
from duly.cli.options import Change, argument
from duly.cli.output import Columns, columns
from duly.features.queues.models import WorkerSnapshot

workers = Group("workers", "Manage running workers.")
_COLUMNS: Columns = {
    **columns("worker_id", "name", "state"),
    "running": lambda worker: f"{worker.running}/{worker.slots}",
    **columns("queues", "version", "started_at", "heartbeat_at"),
}


@workers.command("list", columns=_COLUMNS)
async def list_workers(duly: Duly) -> Rows:
    """List the workers and how many jobs each runs."""
    return {"workers": await duly.queues.workers()}


@workers.command()
async def drain(
    duly: Duly, worker: Annotated[str, argument("Select the worker by its id.", "WORKER")], change: Change
) -> WorkerSnapshot:
    """Drain a worker: it claims no more jobs, finishes its own, and exits."""
    return await duly.queues.drain(worker, **change)
