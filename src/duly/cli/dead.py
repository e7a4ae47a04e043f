"""`duly dead`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.cli.application import read_payload, run
from duly.cli.options import (
    ActorName,
    After,
    AppName,
    AsJson,
    JobId,
    JobType,
    Org,
    Payload,
    Reason,
    Size,
    acting,
)
from duly.cli.show import Columns, print_facts, print_json, print_table
from duly.control.deadletter import ReplayReport

group = typer.Typer(help="Dead letters of an org.", no_args_is_help=True, rich_markup_mode=None)
Fingerprint = Annotated[str | None, typer.Option(help="Only of this kind of failure.")]

_LETTERS: Columns = {
    "job": "job_id",
    "type": "job_type",
    "attempts": "attempts",
    "died": "dead_at",
    "kind": "fingerprint",
    "error": "error_code",
    "message": "error_message",
    "resolution": "resolution",
    "successor": "successor_job_id",
}
_GROUPS: Columns = {
    "kind": "fingerprint",
    "letters": "letters",
    "type": "job_type",
    "error": "error_code",
    "message": "error_message",
    "first": "first_dead_at",
    "last": "last_dead_at",
}
_FACTS = (
    *("job_id", "job_type", "queue", "attempts", "dead_at", "fingerprint", "error_code", "error_class"),
    *(
        "error_message",
        "error_context",
        "project_id",
        "subject_id",
        "correlation_id",
        "payload",
        "payload_ref",
    ),
    *("replay_of", "created_at", "resolution", "resolved_at", "resolved_by", "resolve_reason"),
    "successor_job_id",
)


@group.command("list")
def list_letters(
    org: Org,
    fingerprint: Fingerprint = None,
    job_type: JobType = None,
    resolved: Annotated[bool, typer.Option("--resolved", help="Those that were resolved.")] = False,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The open letters of an org, the newest first."""
    page = run(
        app,
        lambda duly: duly.dead_letters.list(
            org, fingerprint=fingerprint, job_type=job_type, resolved=resolved, limit=limit, after=after
        ),
    )
    print_json(page) if as_json else print_table(page.letters, _LETTERS, after=page.after)


@group.command()
def groups(org: Org, app: AppName = None, as_json: AsJson = False) -> None:
    """The open letters by kind of failure."""
    found = run(app, lambda duly: duly.dead_letters.groups(org))
    print_json({"groups": found}) if as_json else print_table(found, _GROUPS)


@group.command()
def show(job_id: JobId, org: Org, app: AppName = None, as_json: AsJson = False) -> None:
    """One letter with its whole error and its job's input."""
    letter = run(app, lambda duly: duly.dead_letters.get(org, job_id))
    print_json(letter) if as_json else print_facts(letter, _FACTS)


@group.command()
def replay(
    job_id: JobId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Do the job again, as a new one; prints its id."""
    handle = run(app, lambda duly: duly.dead_letters.replay(org, job_id, acting(actor), reason))
    print_json(handle) if as_json else print(handle.job_id)


@group.command("replay-many")
def replay_many(
    org: Org,
    reason: Reason,
    per_second: Annotated[float, typer.Option(help="New jobs that come due a second.")],
    fingerprint: Fingerprint = None,
    job_type: JobType = None,
    limit: Size = 1000,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Replay open letters, the oldest first, at a pace."""
    report = run(
        app,
        lambda duly: duly.dead_letters.replay_many(
            org,
            per_second=per_second,
            fingerprint=fingerprint,
            job_type=job_type,
            limit=limit,
            actor=acting(actor),
            reason=reason,
        ),
    )
    if as_json:
        print_json(report)
        return
    _show_report(report)


def _show_report(report: ReplayReport) -> None:
    print(f"replayed {len(report.replayed)}, left {len(report.left)}")
    if report.replayed:
        print_table(report.replayed, {"new job": "job_id"})
    if report.last_run_at is not None:
        print_facts(report, ["last_run_at"])
    if report.left:
        print_table(report.left.items(), {"left": lambda item: item[0], "because": lambda item: item[1]})


@group.command()
def discard(
    job_id: JobId,
    org: Org,
    reason: Reason,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Take the letter out of the box: nothing more will be done."""
    run(app, lambda duly: duly.dead_letters.discard(org, job_id, acting(actor), reason))
    print_json({"job_id": job_id, "resolution": "discarded"}) if as_json else print("discarded")


@group.command("discard-many")
def discard_many(
    org: Org,
    reason: Reason,
    fingerprint: Fingerprint = None,
    job_type: JobType = None,
    limit: Size = 1000,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Take open letters out of the box, the oldest first: nothing more will be done."""
    done = run(
        app,
        lambda duly: duly.dead_letters.discard_many(
            org,
            fingerprint=fingerprint,
            job_type=job_type,
            limit=limit,
            actor=acting(actor),
            reason=reason,
        ),
    )
    print_json({"discarded": done}) if as_json else print(f"discarded {done}")


@group.command()
def fix(
    job_id: JobId,
    org: Org,
    reason: Reason,
    payload: Payload,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Do the job again with another payload, as a new one; prints its id. Needs --app."""
    values = read_payload(payload)
    handle = run(
        app, lambda duly: duly.dead_letters.fix(org, job_id, values, acting(actor), reason), needed=True
    )
    print_json(handle) if as_json else print(handle.job_id)
