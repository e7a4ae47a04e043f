"""`duly doctor`."""

from __future__ import annotations

from duly.cli.exit_codes import ExitCode
from duly.cli.options import LoadedApp
from duly.cli.output import Output, columns, print_lines, print_table
from duly.features.doctor.finding import Report, Verdict


async def doctor(app: LoadedApp) -> Output:
    """Check the database, the workers and your job types.

    Changes nothing. The exit code is 1 if a check fails.
    """
    # Without opening the application, which would refuse a database that is to be examined.
    report = await app.doctor.examine()
    code = ExitCode.OK if report.ok else ExitCode.CHECK_FAILED
    return Output({"ok": report.ok, "checks": report.lines}, lambda: _print(report), code)


def _print(report: Report) -> None:
    print_table(report.lines, columns("check", result="verdict", found="seen", fix="fix"))
    titles = {"failed": Verdict.FAIL, "warned": Verdict.WARN, "skipped": Verdict.SKIPPED}
    counts = [f"{n} {title}" for title, verdict in titles.items() if (n := report.count(verdict))]
    print_lines([", ".join(counts) or "all checks passed"])
