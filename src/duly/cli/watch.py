"""Following one job to its end."""

from __future__ import annotations

from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from duly.cli.show import console, print_json
from duly.client.handle import Handle
from duly.model.job import JobEvent, JobSnapshot
from duly.model.states import Status


async def watch_job(handle: Handle[Any], *, as_json: bool) -> JobSnapshot:
    """Show how far it is, event by event; the job as it ended."""
    if as_json:
        ended = await handle.wait()
        print_json(ended)
        return ended
    await handle.status()  # an unknown job has no bar
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        console=console(),
    ) as bar:
        task = bar.add_task("queued", total=100, note="")
        shown = _Shown()
        async for event in handle.events():
            shown.take(event)
            bar.update(task, description=shown.status, completed=shown.percent, note=shown.note)
        ended = await handle.status()
        shown.end(ended)
        bar.update(task, description=shown.status, completed=shown.percent, note=shown.note)
    return ended


class _Shown:
    """What the events have told so far."""

    def __init__(self) -> None:
        self.status = "queued"
        self.percent = 0.0
        self.partials = 0
        self.note = ""

    def take(self, event: JobEvent) -> None:
        told = event.payload_json
        self.status = event.status.value
        self.percent = max(self.percent, float(told.get("progress_percent") or 0))
        self.partials += event.event_type == "job.partial"
        self.note = " ".join(filter(None, [self._parts(), str(told.get("note") or "")]))

    def end(self, job: JobSnapshot) -> None:
        self.status = f"{job.status} ({job.outcome})"
        self.percent, self.partials = job.progress_percent, job.partial_count
        said = {Status.FAILED: job.error_message, Status.CANCELED: job.cancel_reason}
        self.note = " ".join(filter(None, [self._parts(), said.get(job.status)]))

    def _parts(self) -> str:
        return f"{self.partials} partial results" if self.partials else ""
