"""Commands of dead letters: `duly dead-letters`."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import typer

from duly.app import Duly
from duly.cli.command import Group, Rows
from duly.cli.options import Change, Depends, JobId, JobType, Org, Paging, Payload, Size
from duly.cli.output import Output, columns, print_facts, print_table
from duly.features.dead_letters.models import DeadLetterDetail, DeadLetterPage, ReplayReport
from duly.jobs.handle import Handle

dead_letters = Group("dead-letters", "Inspect, replay and discard dead letters.")


class _Filter(TypedDict):
    fingerprint: str | None
    job_type: str | None


def _filter(
    fingerprint: Annotated[str | None, typer.Option(help="Filter by kind of failure.")] = None,
    job_type: JobType = None,
) -> _Filter:
    return {"fingerprint": fingerprint, "job_type": job_type}


Filter = Annotated[_Filter, Depends(_filter)]


@dead_letters.command(
    "list",
    columns=columns(
        *("job_id", "job_type", "attempts", "dead_at", "fingerprint", "error_code", "error_message"),
        *("resolution", "successor_job_id"),
    ),
)
async def list_dead_letters(
    duly: Duly,
    org: Org,
    chosen: Filter,
    paging: Paging,
    resolved: Annotated[bool, typer.Option("--resolved", help="List the resolved ones instead.")] = False,
) -> DeadLetterPage:
    """List the open dead letters of an org, newest first."""
    return await duly.dead_letters.list(org, resolved=resolved, **chosen, **paging)


@dead_letters.command(
    columns={
        **columns("fingerprint", "job_type", "error_code", "error_message"),
        **columns("first_dead_at", "last_dead_at", dead_letters="letters"),
    }
)
async def groups(duly: Duly, org: Org) -> Rows:
    """List the open dead letters grouped by kind of failure."""
    return {"groups": await duly.dead_letters.groups(org)}


@dead_letters.command()
async def show(duly: Duly, job_id: JobId, org: Org) -> DeadLetterDetail:
    """Show a dead letter with its error and its payload."""
    return await duly.dead_letters.get(org, job_id)


@dead_letters.command()
async def replay(duly: Duly, job_id: JobId, org: Org, change: Change) -> Handle[Any]:
    """Replay a dead letter as a new job and print its id."""
    return await duly.dead_letters.replay(org, job_id, **change)


@dead_letters.command("replay-many")
async def replay_many(
    duly: Duly,
    org: Org,
    chosen: Filter,
    change: Change,
    per_second: Annotated[float, typer.Option(help="Limit the new jobs per second.")],
    limit: Size = 1000,
) -> Output:
    """Replay open dead letters, oldest first, at a given rate."""
    report = await duly.dead_letters.replay_many(org, per_second=per_second, limit=limit, **chosen, **change)
    return Output(report, lambda: _print_report(report))


def _print_report(report: ReplayReport) -> None:
    print(f"replayed {len(report.replayed)}, left {len(report.left)}")
    if report.replayed:
        print_table(report.replayed, {"new job": "job_id"})
    if report.last_run_at is not None:
        print_facts(report, ["last_run_at"])
    if report.left:
        left = [{"left": job_id, "because": reason} for job_id, reason in report.left.items()]
        print_table(left, columns("left", "because"))


@dead_letters.command()
async def discard(duly: Duly, job_id: JobId, org: Org, change: Change) -> Output:
    """Discard a dead letter; the job is not retried."""
    await duly.dead_letters.discard(org, job_id, **change)
    return Output({"job_id": job_id, "resolution": "discarded"}, "discarded")


@dead_letters.command("discard-many")
async def discard_many(duly: Duly, org: Org, chosen: Filter, change: Change, limit: Size = 1000) -> Output:
    """Discard open dead letters, oldest first; their jobs are not retried."""
    discarded = await duly.dead_letters.discard_many(org, limit=limit, **chosen, **change)
    return Output({"discarded": discarded}, f"discarded {discarded}")


@dead_letters.command(job_types=True)
async def fix(duly: Duly, job_id: JobId, org: Org, payload: Payload, change: Change) -> Handle[Any]:
    """Replay a dead letter with another payload and print the job id."""
    return await duly.dead_letters.fix(org, job_id, payload, **change)
