"""The command `duly doctor`."""

from __future__ import annotations

from duly.cli.exit_codes import ExitCode
from duly.cli.options import LoadedApp
from duly.cli.output import Output, columns, print_lines, print_table
from duly.features.doctor.models import CheckVerdict, DoctorReport


async def doctor(app: LoadedApp) -> Output:
    """Check the database, the workers and your job types.

    Changes nothing. The exit code is 1 if a check fails.
    """
    # Without opening the application, which would refuse a database with problems.
    report = await app.doctor.examine()
    code = ExitCode.OK if report.ok else ExitCode.CHECK_FAILED
    checks = [
        {"check": line.check, "verdict": line.verdict, "seen": line.message, "fix": line.fix}
        for line in report.lines
    ]
    return Output({"ok": report.ok, "checks": checks}, lambda: _print(report), code)


def _print(report: DoctorReport) -> None:
    print_table(report.lines, columns("check", result="verdict", found="message", fix="fix"))
    titles = {"failed": CheckVerdict.FAIL, "warned": CheckVerdict.WARN, "skipped": CheckVerdict.SKIPPED}
    counts = [f"{n} {title}" for title, verdict in titles.items() if (n := report.count(verdict))]
    print_lines([", ".join(counts) or "all checks passed"])
