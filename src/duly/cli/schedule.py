"""`duly schedule`."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.cli.application import read_payload, run
from duly.cli.options import ActorName, AppName, AsJson, Org, Payload, Reason, acting
from duly.cli.show import Columns, print_json, print_table
from duly.model.cron import Missed
from duly.store.schedules import ScheduleSnapshot

group = typer.Typer(help="Schedules of an org.", no_args_is_help=True, rich_markup_mode=None)
Name = Annotated[str, typer.Argument(help="The schedule's name.", show_default=False)]

_COLUMNS: Columns = {
    "name": "name",
    "cron": "cron",
    "zone": "timezone",
    "type": "job_type",
    "missed": "missed_policy",
    "next": "next_tick_at",
    "last": "last_tick_at",
    "paused": "paused_at",
    "by": "paused_by",
    "reason": "pause_reason",
    "error": "last_error",
}
_TICKS: Columns = {"tick": "tick_at", "became": "disposition", "job": "job_id", "recorded": "recorded_at"}


@group.command("list")
def list_schedules(org: Org, app: AppName = None, as_json: AsJson = False) -> None:
    """The schedules of an org, by name."""
    found = run(app, lambda duly: duly.schedules.list(org))
    print_json({"schedules": found}) if as_json else print_table(found, _COLUMNS)


@group.command()
def create(
    name: Name,
    org: Org,
    reason: Reason,
    cron: Annotated[str, typer.Option(help="Five fields, or six with the seconds first.")],
    job_type: Annotated[str, typer.Option("--type", help="The job type to enqueue.")],
    payload: Payload = "{}",
    timezone: Annotated[str, typer.Option(help="The zone of the expression, as in Europe/Berlin.")] = "UTC",
    missed: Annotated[Missed, typer.Option(help="What becomes of ticks that nobody served.")] = Missed.ONCE,
    project: Annotated[UUID | None, typer.Option(help="The project of the org.")] = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Make the schedule, or change the one of that name. Needs --app."""
    values = read_payload(payload)
    made = run(
        app,
        lambda duly: duly.schedules.create(
            org,
            name,
            cron=cron,
            job_type=job_type,
            payload=values,
            timezone=timezone,
            missed=missed,
            project_id=project,
            actor=acting(actor),
            reason=reason,
        ),
        needed=True,
    )
    _show(made, as_json)


@group.command()
def pause(
    name: Name,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Run nothing until it is resumed; ticks are recorded as missed."""
    _show(run(app, lambda duly: duly.schedules.pause(org, name, acting(actor), reason)), as_json)


@group.command()
def resume(
    name: Name,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Let it run again, from its next tick on."""
    _show(run(app, lambda duly: duly.schedules.resume(org, name, acting(actor), reason)), as_json)


@group.command("run")
def run_now(
    name: Name,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Run it once, here and now; prints the job's id. Needs --app."""
    handle = run(app, lambda duly: duly.schedules.run_now(org, name, acting(actor), reason), needed=True)
    print_json(handle) if as_json else print(handle.job_id)


@group.command()
def delete(
    name: Name,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """End it; its ticks stay on record and its jobs go on."""
    run(app, lambda duly: duly.schedules.delete(org, name, acting(actor), reason))
    print_json({"name": name, "deleted": True}) if as_json else print("deleted")


@group.command()
def upcoming(
    name: Name,
    org: Org,
    count: Annotated[int, typer.Option(help="How many.")] = 5,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Its next ticks."""
    times = run(app, lambda duly: duly.schedules.upcoming(org, name, count))
    if as_json:
        print_json({"name": name, "upcoming": times})
    else:
        print("\n".join(f"{at:%Y-%m-%d %H:%M:%SZ}" for at in times))


@group.command()
def ticks(
    name: Name,
    org: Org,
    count: Annotated[int, typer.Option(help="How many.")] = 20,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """What became of its last ticks, the newest first."""
    found = run(app, lambda duly: duly.schedules.ticks(org, name, count))
    print_json({"name": name, "ticks": found}) if as_json else print_table(found, _TICKS)


def _show(schedule: ScheduleSnapshot, as_json: bool) -> None:
    print_json(schedule) if as_json else print_table([schedule], _COLUMNS)
