"""`duly jobs`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, cast

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.exit_codes import ExitCode
from duly.cli.options import AsJson, Change, Depends, JobId, JobType, Org, Paging, time_option
from duly.cli.output import Columns, Output, columns, print_facts, print_lines, print_table
from duly.core.freshness import Freshness
from duly.core.states import Outcome, Status
from duly.features.bulk.commands import Match, bulk, parse_match
from duly.features.job_logs.commands import logs
from duly.features.jobs.filter import JobFilterKeywords
from duly.features.jobs.follow import watch_job
from duly.features.jobs.service import JobDetail, JobPage
from duly.jobs.handle import Handle

jobs = Group("jobs", "List, inspect and control jobs.")
_COLUMNS: Columns = {
    **columns("job_id", "job_type", "status", "outcome", "progress_percent"),
    "attempts": lambda job: f"{job.attempt}/{job.max_attempts}",
    **columns("queue", "created_at", "finished_at", "error_code"),
}
_FIELDS = (
    *("job_id", "org_id", "project_id", "subject_id", "job_type", "queue", "priority", "status", "outcome"),
    *("attempt", "max_attempts", "progress_percent", "partial_count", "created_at", "run_at", "started_at"),
    *("finished_at", "actor_type", "actor_id", "request_id", "correlation_id", "idempotency_key"),
    *("replay_of", "error_code", "error_message", "cancel_reason", "summary_counts"),
)


def _filters(
    status: Annotated[Status | None, typer.Option(help="Filter by status.")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="Filter by outcome.")] = None,
    job_type: JobType = None,
    queue: Annotated[str | None, typer.Option(help="Filter by queue.")] = None,
    subject: Annotated[str | None, typer.Option(help="Filter by subject.")] = None,
    freshness: Annotated[Freshness | None, typer.Option(help="Filter active jobs by freshness.")] = None,
    created_after: Annotated[datetime | None, time_option("--created-after", "List jobs since then.")] = None,
    created_before: Annotated[
        datetime | None, time_option("--created-before", "List jobs before then.")
    ] = None,
    metadata: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Filter by metadata; repeatable.")
    ] = None,
    match: Match = "",
) -> JobFilterKeywords:
    filters = JobFilterKeywords(
        status=status,
        outcome=outcome,
        job_type=job_type,
        queue=queue,
        subject_id=subject,
        freshness=freshness,
        created_after=created_after,
        created_before=created_before,
        metadata=dict(_parse_metadata(text) for text in metadata or []) or None,
    )
    set_filters = {name: value for name, value in filters.items() if value is not None}
    return {**parse_match(match), **cast(JobFilterKeywords, set_filters)}


def _parse_metadata(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter("write it as NAME=VALUE", param_hint="--metadata")
    return name, value


@jobs.command("list", columns=_COLUMNS)
async def list_jobs(
    duly: Duly, org: Org, filters: Annotated[JobFilterKeywords, Depends(_filters)], paging: Paging
) -> JobPage:
    """List the jobs of an org, newest first.

    With an ended --status, the last to finish comes first.
    """
    return await duly.jobs.list(org, **paging, **filters)


@jobs.command()
async def show(duly: Duly, job_id: JobId, org: Org) -> Output:
    """Show a job with its attempts, its events and an explanation."""
    detail = await duly.jobs.show(org, job_id)
    return Output(detail, lambda: _print(detail))


def _print(detail: JobDetail) -> None:
    print_lines(detail.explanation)
    print_facts(detail.job, _FIELDS)
    print_table(
        [detail.freshness], {"freshness": "shown", **columns("evaluated_at", "threshold", "evidence")}
    )
    if detail.job.reconciliations:
        fields = columns("reason_code", "message", "at", "source", "status", "evidence")
        print_table(detail.job.reconciliations, {"repaired": "kind", **fields})
    print_table(
        detail.attempts,
        columns("attempt", "worker_id", "started_at", finished="ended_at", by="ended_by", detail="detail"),
    )
    print_table(
        detail.events,
        columns("event_seq", "event_type", "occurred_at", by="actor_id", detail="payload_json"),
    )


@jobs.command()
async def watch(duly: Duly, job_id: JobId, org: Org, as_json: AsJson = False) -> None:
    """Follow a job until it ends.

    The exit code is 0 if the job completed, and 1 if it failed or was canceled.
    """
    job = await watch_job(duly.handle(job_id, org_id=org), as_json=as_json)
    if job.status is not Status.COMPLETED:
        raise typer.Exit(ExitCode.JOB_FAILED)


jobs.command(stream=True)(logs)


@jobs.command()
async def cancel(duly: Duly, job_id: JobId, org: Org, change: Change) -> Output:
    """Cancel a job; the worker of a running job is asked to stop it."""
    status = await duly.jobs.cancel(org, job_id, **change)
    canceled = status is Status.CANCELED
    return Output(
        {"job_id": job_id, "status": status}, "canceled" if canceled else f"cancel requested, now {status}"
    )


jobs.command()(bulk)


@jobs.command()
async def rerun(duly: Duly, job_id: JobId, org: Org, change: Change) -> Handle[Any]:
    """Run an ended job again as a new job and print its id."""
    return await duly.dead_letters.rerun(org, job_id, **change)
