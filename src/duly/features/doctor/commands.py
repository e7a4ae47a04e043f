"""The command `duly doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

import typer

from duly.cli.exit_codes import ExitCode
from duly.cli.options import Depends, LoadedApp
from duly.cli.output import Output, columns, print_lines, print_table
from duly.features.doctor.capacity_report import (
    CapacityFigure,
    CapacityPlan,
    CapacityReport,
    DiskUse,
    FigureUnit,
)
from duly.features.doctor.models import CheckVerdict, DoctorReport
from duly.features.doctor.server_checks import format_bytes

_SUFFIXES = {"k": 1e3, "M": 1e6, "G": 1e9}


def _number(text: Any) -> float:
    try:
        return float(text[:-1]) * _SUFFIXES[text[-1]] if text[-1:] in _SUFFIXES else float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number: write 2500000 or 2.5M") from None


def _number_option(name: str, summary: str) -> Any:
    return typer.Option(name, parser=_number, metavar="NUMBER", help=summary)


def _capacity_plan(
    capacity: Annotated[
        bool, typer.Option("--capacity", help="Show what the load needs, instead of checking.")
    ] = False,
    jobs_per_day: Annotated[
        float | None, _number_option("--jobs-per-day", "Set a planned load, such as 2.5M.")
    ] = None,
    peak: Annotated[
        float | None, _number_option("--peak", "Set the busiest hour as a multiple of the average one.")
    ] = None,
    cores: Annotated[float | None, _number_option("--cores", "Set the cores of the database server.")] = None,
    disk_gib: Annotated[
        float | None, _number_option("--disk-gib", "Set the disk of the database server in GiB.")
    ] = None,
) -> CapacityPlan | None:
    plan = CapacityPlan(jobs_per_day, peak, cores, disk_gib)
    if not capacity and plan != CapacityPlan():
        name = next(name for name, value in asdict(plan).items() if value is not None)
        raise typer.BadParameter("use it with --capacity", param_hint=f"--{name.replace('_', '-')}")
    return plan if capacity else None


async def doctor(app: LoadedApp, plan: Annotated[CapacityPlan | None, Depends(_capacity_plan)]) -> Output:
    """Check the database, the workers and your job types.

    Changes nothing. The exit code is 1 if a check fails. With --capacity, compute what the present or a
    planned load needs in cores, disk and WAL; the exit code is 1 if the machine does not suffice.
    """
    # Without opening the application, which would refuse a database with problems.
    if plan is not None:
        return _capacity_output(await app.doctor.capacity(plan))
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


def _capacity_output(report: CapacityReport) -> Output:
    figures = {
        one.name: {"value": one.value, "unit": one.unit, "source": one.source, "note": one.note}
        for one in report.figures
    }
    document = {"fits": report.fits, "limit": report.limit, "figures": figures, "disk": report.disk}
    code = ExitCode.CHECK_FAILED if report.fits is False else ExitCode.OK
    return Output(document, lambda: _print_capacity(report), code)


def _print_capacity(report: CapacityReport) -> None:
    figure: dict[str, Callable[[CapacityFigure], str]] = {
        "figure": lambda one: one.name.replace("_", " "),
        "value": _format,
        "source": lambda one: one.source,
        "note": lambda one: one.note,
    }
    print_table(report.figures, figure)
    use: dict[str, Callable[[DiskUse], str]] = {
        "disk": lambda one: one.group,
        "now": lambda one: format_bytes(one.now.all),
        "indexes": lambda one: format_bytes(one.now.indexes),
        "a job": lambda one: f"{one.per_job.all:,.0f} B" if one.per_job else "",
        "its indexes": lambda one: f"{one.per_job.indexes:,.0f} B" if one.per_job else "",
        "source": lambda one: one.source,
        "days kept": lambda one: f"{one.retention_days:g}" if one.retention_days else "",
        "steady state": lambda one: format_bytes(one.steady_bytes),
    }
    print_lines([""])
    print_table(report.disk, use)
    print_lines(["", _verdict(report)])


def _verdict(report: CapacityReport) -> str:
    if report.limit is None:
        return "the machine of the server is not visible from here: use --cores and --disk-gib"
    limit = _format(report[f"max_jobs_per_day_by_{report.limit}"])
    if report.fits:
        return f"the machine suffices: up to {limit}, then the {report.limit} is exhausted"
    return f"the {report.limit} does not suffice: it can take {limit}"


def _format(one: CapacityFigure) -> str:
    if one.value is None:
        return "unknown"
    match one.unit:
        case FigureUnit.BYTES:
            return format_bytes(one.value)
        case FigureUnit.BYTES_PER_DAY:
            return f"{format_bytes(one.value)}/day"
        case FigureUnit.JOBS_PER_DAY:
            return f"{one.value:,.0f} {one.unit}"
        case _:
            return f"{one.value:,.3g} {one.unit}" if one.value < 1000 else f"{one.value:,.0f} {one.unit}"
