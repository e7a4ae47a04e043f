"""Follow a job in the terminal until it ends."""

from __future__ import annotations

from typing import Any

from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from duly.cli.output import console, print_json
from duly.core.job import JobEvent, JobSnapshot
from duly.core.states import Status
from duly.jobs.handle import Handle


async def watch_job(handle: Handle[Any], *, as_json: bool) -> JobSnapshot:
    """Show the progress of a job event by event, and return the ended job."""
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
        progress = _JobProgress()
        async for event in handle.events():
            progress.apply(event)
            bar.update(task, description=progress.status, completed=progress.percent, note=progress.note)
        ended = await handle.status()
        progress.end(ended)
        bar.update(task, description=progress.status, completed=progress.percent, note=progress.note)
    return ended


class _JobProgress:
    """The progress of a job, as far as its events tell."""

    def __init__(self) -> None:
        self.status = "queued"
        self.percent = 0.0
        self.partials = 0
        self.note = ""

    def apply(self, event: JobEvent) -> None:
        payload = event.payload_json
        self.status = event.status.value
        self.percent = max(self.percent, float(payload.get("progress_percent") or 0))
        self.partials += event.event_type == "job.partial"
        self.note = self._note(payload.get("note"))

    def end(self, job: JobSnapshot) -> None:
        self.status = f"{job.status} ({job.outcome})"
        self.percent, self.partials = job.progress_percent, job.partial_count
        reasons = {Status.FAILED: job.error_message, Status.CANCELED: job.cancel_reason}
        self.note = self._note(reasons.get(job.status))

    def _note(self, text: str | None) -> str:
        partials = f"{self.partials} partial result{'s' * (self.partials != 1)}" if self.partials else ""
        return " ".join(filter(None, [partials, text]))
