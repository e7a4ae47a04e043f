"""`duly schedules`."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group, Rows
from duly.cli.options import Change, OptionalPayload, Org, argument
from duly.cli.output import Output, columns
from duly.features.schedules.cron import Missed
from duly.features.schedules.models import ScheduleSnapshot
from duly.jobs.handle import Handle

schedules = Group("schedules", "Manage schedules.")
Name = Annotated[str, argument("Select the schedule by its name.")]
Count = Annotated[int, typer.Option("--count", help="Limit the number of ticks.")]


@schedules.command(
    "list",
    columns=columns(
        *("name", "cron", "timezone", "job_type", "missed_policy", "next_tick_at", "last_tick_at"),
        *("paused_at", "paused_by", "pause_reason", "last_error"),
    ),
)
async def list_schedules(duly: Duly, org: Org) -> Rows:
    """List the schedules of an org by name."""
    return {"schedules": await duly.schedules.list(org)}


@schedules.command(job_types=True)
async def create(
    duly: Duly,
    name: Name,
    org: Org,
    change: Change,
    cron: Annotated[str, typer.Option(help="Set the cron expression: 5 fields, or 6 with seconds.")],
    job_type: Annotated[str, typer.Option("--type", help="Set the job type to enqueue.")],
    payload: OptionalPayload,
    timezone: Annotated[str, typer.Option(help="Set the time zone, as in Europe/Berlin.")] = "UTC",
    missed: Annotated[Missed, typer.Option(help="Choose what happens to missed ticks.")] = Missed.ONCE,
    project: Annotated[UUID | None, typer.Option(help="Assign the jobs to this project.")] = None,
) -> ScheduleSnapshot:
    """Create a schedule, or update the one with this name."""
    return await duly.schedules.create(
        org,
        name,
        cron=cron,
        job_type=job_type,
        payload=payload,
        timezone=timezone,
        missed=missed,
        project_id=project,
        **change,
    )


@schedules.command()
async def pause(duly: Duly, name: Name, org: Org, change: Change) -> ScheduleSnapshot:
    """Pause a schedule; its ticks are recorded as missed."""
    return await duly.schedules.pause(org, name, **change)


@schedules.command()
async def resume(duly: Duly, name: Name, org: Org, change: Change) -> ScheduleSnapshot:
    """Resume a paused schedule from its next tick on."""
    return await duly.schedules.resume(org, name, **change)


@schedules.command("run", job_types=True)
async def run_now(duly: Duly, name: Name, org: Org, change: Change) -> Handle[Any]:
    """Run a schedule once, now, and print the job id."""
    return await duly.schedules.run_now(org, name, **change)


@schedules.command()
async def delete(duly: Duly, name: Name, org: Org, change: Change) -> Output:
    """Delete a schedule; its recorded ticks and its jobs stay."""
    await duly.schedules.delete(org, name, **change)
    return Output({"name": name, "deleted": True}, "deleted")


@schedules.command()
async def upcoming(duly: Duly, name: Name, org: Org, count: Count = 5) -> Output:
    """List the next ticks of a schedule."""
    times = await duly.schedules.upcoming(org, name, count)
    return Output({"name": name, "upcoming": times}, "\n".join(f"{at:%Y-%m-%d %H:%M:%SZ}" for at in times))


@schedules.command(columns=columns("tick_at", "disposition", "job_id", "recorded_at"))
async def ticks(duly: Duly, name: Name, org: Org, count: Count = 20) -> Rows:
    """List the last ticks of a schedule and their jobs, newest first."""
    return {"name": name, "ticks": await duly.schedules.ticks(org, name, count)}
