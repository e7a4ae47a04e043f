"""`duly jobs`."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, cast

import typer

from duly.cli.application import run
from duly.cli.exits import ExitCode
from duly.cli.job_bulk import Match, bulk, matching
from duly.cli.job_log import print_log
from duly.cli.options import (
    ActorName,
    After,
    AppName,
    AsJson,
    JobId,
    JobType,
    Org,
    Reason,
    Size,
    acting,
    moment,
)
from duly.cli.show import Columns, print_facts, print_json, print_lines, print_table
from duly.cli.watch import watch_job
from duly.control.job_choice import Filters
from duly.model.freshness import Freshness
from duly.model.states import Outcome, Status

group = typer.Typer(help="Jobs of an org.", no_args_is_help=True, rich_markup_mode=None)

_COLUMNS: Columns = {
    "job": "job_id",
    "type": "job_type",
    "status": "status",
    "outcome": "outcome",
    "%": "progress_percent",
    "attempt": lambda job: f"{job.attempt}/{job.max_attempts}",
    "queue": "queue",
    "created": "created_at",
    "finished": "finished_at",
    "error": "error_code",
}
_FACTS = (
    *("job_id", "org_id", "project_id", "subject_id", "job_type", "queue", "priority", "status", "outcome"),
    *(
        "attempt",
        "max_attempts",
        "progress_percent",
        "partial_count",
        "created_at",
        "run_at",
        "started_at",
        "finished_at",
    ),
    *("actor_type", "actor_id", "request_id", "correlation_id", "idempotency_key", "replay_of"),
    *("error_code", "error_message", "cancel_reason", "summary_counts"),
)


@group.command("list")
def list_jobs(
    org: Org,
    status: Annotated[Status | None, typer.Option(help="Only in this status.")] = None,
    outcome: Annotated[Outcome | None, typer.Option(help="Only with this outcome.")] = None,
    job_type: JobType = None,
    queue: Annotated[str | None, typer.Option(help="Only of this queue.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this subject.")] = None,
    freshness: Annotated[Freshness | None, typer.Option(help="Only active ones that are so.")] = None,
    created_after: Annotated[str | None, typer.Option(help="Not older, as in 2026-11-15T12:00:00Z.")] = None,
    created_before: Annotated[str | None, typer.Option(help="Only older ones.")] = None,
    metadata: Annotated[list[str] | None, typer.Option(help="Only with this, as NAME=VALUE; repeat.")] = None,
    match: Match = "",
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The jobs of an org, the newest first; of an ended status, the last to end first."""
    since, until = moment(created_after, "--created-after"), moment(created_before, "--created-before")
    said = Filters(
        status=status,
        outcome=outcome,
        job_type=job_type,
        queue=queue,
        subject_id=subject,
        freshness=freshness,
        created_after=since,
        created_before=until,
        metadata=dict(_named(one) for one in metadata or []) or None,
    )
    given = cast(Filters, {name: value for name, value in said.items() if value is not None})
    wanted: Filters = {**matching(match), **given}
    page = run(app, lambda duly: duly.jobs.list(org, limit=limit, after=after, **wanted))
    print_json(page) if as_json else print_table(page.jobs, _COLUMNS, after=page.after)


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise typer.BadParameter("write it as NAME=VALUE", param_hint="--metadata")
    return name, value


@group.command()
def show(job_id: JobId, org: Org, app: AppName = None, as_json: AsJson = False) -> None:
    """One job with its attempts, its events, and why it is where it is."""
    found = run(app, lambda duly: duly.jobs.show(org, job_id))
    if as_json:
        print_json(found)
        return
    print_lines(found.explanation)
    print_facts(found.job, _FACTS)
    judged: Columns = {"freshness": "shown", "judged at": "evaluated_at", "threshold": "threshold"}
    print_table([found.freshness], {**judged, "evidence": "evidence"})
    if found.job.reconciliations:
        healed = {"put right": "kind", "reason": "reason_code", "in words": "message", "at": "at"}
        rest = {"by": "source", "became": "status", "evidence": "evidence"}
        print_table(found.job.reconciliations, {**healed, **rest})
    ended = {"attempt": "attempt", "worker": "worker_id", "started": "started_at", "ended": "ended_at"}
    print_table(found.attempts, {**ended, "by": "ended_by", "detail": "detail"})
    told = {"event": "event_seq", "type": "event_type", "at": "occurred_at", "by": "actor_id"}
    print_table(found.events, {**told, "detail": "payload_json"})


@group.command()
def watch(job_id: JobId, org: Org, app: AppName = None, as_json: AsJson = False) -> None:
    """Follow a job to its end; ends with 0 if it completed, with 1 if it failed or was canceled."""
    ended = run(app, lambda duly: watch_job(duly.handle(job_id, org_id=org), as_json=as_json))
    if ended.status is not Status.COMPLETED:
        raise typer.Exit(ExitCode.JOB_ENDED_BADLY)


@group.command()
def logs(
    job_id: JobId,
    org: Org,
    attempt: Annotated[int | None, typer.Option(min=1, help="Only of this attempt.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more until the job has ended.")] = False,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """What its handler logged with `ctx.log`; as JSON, a line each."""
    with suppress(KeyboardInterrupt):  # the way to stop following
        run(
            app,
            lambda duly: print_log(duly, org, job_id, attempt=attempt, follow=follow, as_json=as_json),
        )


@group.command()
def cancel(
    job_id: JobId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """End a job that waits, or ask the worker that holds it."""
    status = run(app, lambda duly: duly.jobs.cancel(org, job_id, actor=acting(actor), reason=reason))
    if as_json:
        print_json({"job_id": job_id, "status": status})
    else:
        print("canceled" if status is Status.CANCELED else f"asked for; it is {status}")


group.command("bulk")(bulk)


@group.command()
def rerun(
    job_id: JobId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Do an ended job again, as a new one; prints its id."""
    handle = run(app, lambda duly: duly.dead_letters.rerun(org, job_id, acting(actor), reason))
    print_json(handle) if as_json else print(handle.job_id)
