"""`duly reconcile`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.cli.application import run
from duly.cli.options import AppName, AsJson
from duly.cli.show import Columns, print_json, print_table

_COLUMNS: Columns = {
    "org": "org_id",
    "job": "job_id",
    "type": "job_type",
    "was": "status",
    "found": lambda finding: finding.record.kind,
    "reason": lambda finding: finding.record.reason_code,
    "in words": lambda finding: finding.record.message,
    "evidence": lambda finding: finding.record.evidence,
    "healed": "healed",
}


def reconcile(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be put right.")] = False,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Look at every active job once, and end those that cannot be believed any more. Workers do it too.

    Without --app, callbacks and adapters are left to the workers.
    """
    found = run(app, lambda duly: duly.reconcile(dry_run=dry_run))
    if as_json:
        print_json({"dry_run": dry_run, "findings": found})
    elif found:
        print_table(found, _COLUMNS)
    else:
        print("everything is as it should be")
