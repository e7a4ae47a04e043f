"""`duly reconcile`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.cli.application import run
from duly.cli.exits import ExitCode
from duly.cli.options import AppName, AsJson
from duly.cli.show import Columns, plain, print_json, print_lines, print_table
from duly.upkeep.reconciliation import Reconciliation

_COLUMNS: Columns = {
    "org": "org_id",
    "job": "job_id",
    "type": "job_type",
    "was": "status",
    "becomes": "becomes",
    "done": "healed",
    "reason": lambda finding: finding.record.reason_code,
    "in words": lambda finding: finding.record.message,
}


def reconcile(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Put right, at once, what workers with upkeep put right: lost leases, stale jobs, records, callbacks.

    Ends with 1 if something could not be put right. Without --app, adapters and callbacks are left to the
    workers.
    """
    done = run(app, lambda duly: duly.reconcile(dry_run=dry_run))
    if as_json:
        print_json({"dry_run": dry_run, **plain(done)})
    else:
        _print(done)
    if done.troubles:
        raise typer.Exit(ExitCode.UNWELL)


def _print(done: Reconciliation) -> None:
    if done.findings:
        print_table(done.findings, _COLUMNS)
    print_lines(f"the callback of job {job_id} was made" for job_id in done.callbacks_made)
    print_lines(done.troubles)
    if not (done.findings or done.callbacks_made or done.troubles):
        print("everything is as it should be")
