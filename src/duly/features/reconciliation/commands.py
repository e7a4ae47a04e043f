"""`duly reconcile`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.app import Duly
from duly.cli.exit_codes import ExitCode
from duly.cli.output import Columns, Output, columns, plain, print_lines, print_table
from duly.maintenance.reconcile import Reconciliation

_COLUMNS: Columns = {
    **columns("org_id", "job_id", "job_type", "status", "becomes", done="healed"),
    "reason": lambda finding: finding.record.reason_code,
    "message": lambda finding: finding.record.message,
}


async def reconcile(
    duly: Duly,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the findings and change nothing.")
    ] = False,
) -> Output:
    """Repair lost leases, stale jobs, records and callbacks now.

    Workers with maintenance do the same all the time. The exit code is 1 if something could not be repaired.
    Without --app, adapters and callbacks are left to the workers.
    """
    report = await duly.reconcile(dry_run=dry_run)
    code = ExitCode.CHECK_FAILED if report.troubles else ExitCode.OK
    return Output({"dry_run": dry_run, **plain(report)}, lambda: _print(report), code)


def _print(report: Reconciliation) -> None:
    if report.findings:
        print_table(report.findings, _COLUMNS)
    print_lines(f"callback of job {job_id} delivered" for job_id in report.callbacks_made)
    print_lines(report.troubles)
    if not (report.findings or report.callbacks_made or report.troubles):
        print("nothing to repair")
