"""`duly doctor`."""

from __future__ import annotations

import asyncio

import typer

from duly.cli.application import find
from duly.cli.exits import ExitCode
from duly.cli.options import AppName, AsJson
from duly.cli.show import Columns, print_json, print_lines, print_table
from duly.control.doctor import Report, Verdict

_CHECK: Columns = {"check": "check", "result": "verdict", "what was seen": "seen", "what to do": "fix"}


def doctor(app: AppName = None, as_json: AsJson = False) -> None:
    """Look at the database, the workers and your job types, and change nothing; ends with 1 if one fails."""
    # Not by opening the application: that would refuse what is to be looked at.
    report = asyncio.run(find(app).doctor.examine())
    if as_json:
        print_json({"ok": report.ok, "checks": report.lines})
    else:
        print_table(report.lines, _CHECK)
        print_lines([_summary(report)])
    raise typer.Exit(ExitCode.OK if report.ok else ExitCode.UNWELL)


def _summary(report: Report) -> str:
    said = {"failed": Verdict.FAIL, "to look at": Verdict.WARN, "skipped": Verdict.SKIPPED}
    counts = [f"{n} {word}" for word, verdict in said.items() if (n := report.count(verdict))]
    return ", ".join(counts) or "all is well"
