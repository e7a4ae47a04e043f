"""`duly audit`."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Iterable
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from duly.cli.application import run
from duly.cli.exits import ExitCode
from duly.cli.options import After, AppName, AsJson, Org, Size, moment
from duly.cli.show import Columns, print_json, print_lines, print_table
from duly.control.audit import AuditPage
from duly.control.audit_report import AuditReport, verify_rows
from duly.model import payload
from duly.wiring import Duly

group = typer.Typer(help="The audit trail, and its seals.", no_args_is_help=True, rich_markup_mode=None)

_COLUMNS: Columns = {
    "at": "occurred_at",
    "who": lambda entry: f"{entry.actor_type}:{entry.actor_id}",
    "action": "action",
    "target": lambda entry: f"{entry.target_type} {entry.target_id}",
    "reason": "reason",
    "detail": lambda entry: entry.detail.get("summary") or entry.detail,
    "entry": "entry_id",
}


@group.command("list")
def list_entries(
    org: Org,
    actor: Annotated[str | None, typer.Option(help="Only by them: an id, alone or as user:anna.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, or those of a first word.")] = None,
    target: Annotated[str | None, typer.Option(help="Only about what has this id.")] = None,
    since: Annotated[str | None, typer.Option(help="Only since then, as 2026-11-15T12:00:00Z.")] = None,
    until: Annotated[str | None, typer.Option(help="Only before then.")] = None,
    limit: Size = 50,
    after: After = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Who changed what and why, the newest first."""
    start, end = moment(since, "--since"), moment(until, "--until")

    def listed(duly: Duly) -> Awaitable[AuditPage]:
        return duly.audit.list(
            org,
            actor=actor,
            action=action,
            target_id=target,
            since=start,
            until=end,
            limit=limit,
            after=after,
        )

    page = run(app, listed)
    print_json(page) if as_json else print_table(page.entries, _COLUMNS, after=page.after)


@group.command()
def verify(
    org: Annotated[UUID | None, typer.Option("--org", envvar="DULY_ORG", help="The org it is about.")] = None,
    everybody: Annotated[bool, typer.Option("--all", help="Every org.")] = False,
    expect: Annotated[
        str | None,
        typer.Option(help="The head that an earlier run printed; the chain must still contain it."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="What `duly audit export` wrote, instead of the database; - for stdin."),
    ] = None,
    kept_since: Annotated[
        str | None,
        typer.Option(help="With --file: sealed entries of before may be gone, as 2026-11-01T00:00:00Z."),
    ] = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Compare the audit trail with its seals; ends with 1 if something was changed, and says what."""
    if file is None and org is None and not everybody:
        raise typer.BadParameter("say which: --org, --all, or --file")
    if everybody and expect is not None:
        raise typer.BadParameter("a head is that of one org: use it with --org", param_hint="--expect")
    if file is None:
        found = run(app, lambda duly: _reports(duly, None if everybody else org, expect))
    else:
        found = verify_rows(_rows(file), expect=expect, kept_since=moment(kept_since, "--kept-since"))
    if as_json:
        print_json({"reports": found})
    else:
        print_lines(line for report in found for line in _lines(report))
    if not all(report.ok for report in found):
        raise typer.Exit(ExitCode.UNWELL)


@group.command()
def export(
    org: Org,
    app: AppName = None,
    as_json: Annotated[bool, typer.Option("--json", help="As always here: a line of JSON a row.")] = True,
) -> None:
    """Every entry and every seal of an org, a line of JSON each, in the order of the chain."""
    run(app, lambda duly: _export(duly, org))


@group.command()
def events(
    org: Org,
    after: Annotated[
        str | None, typer.Option("--after", help="The cursor of the last one you have; else from the oldest.")
    ] = None,
    app: AppName = None,
    as_json: Annotated[bool, typer.Option("--json", help="As always here: a line of JSON an event.")] = True,
) -> None:
    """What became of the jobs of an org, as job.enqueued or job.succeeded, a line of JSON each."""
    run(app, lambda duly: _events(duly, org, after))


async def _events(duly: Duly, org: UUID, after: str | None) -> None:
    more = True
    while more:
        page = await duly.audit.events(org, limit=500, after=after)
        for event in page.events:
            print_json(event)
        after, more = page.after, page.more


def _rows(file: Path) -> Iterable[dict[str, Any]]:
    """The lines of an export, read as strictly as payloads."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--file") from None
    return [payload.parse(line) for line in text.split("\n") if line.strip()]


async def _reports(duly: Duly, org: UUID | None, expect: str | None) -> list[AuditReport]:
    if org is None:
        return [report async for report in duly.audit.verify_all()]
    return [await duly.audit.verify(org, expect=expect)]


async def _export(duly: Duly, org: UUID) -> None:
    async for row in duly.audit.export(org):
        print_json({name: _hex(value) for name, value in row.items()})


def _hex(value: Any) -> Any:
    if isinstance(value, list):
        return [_hex(inner) for inner in value]
    return value.hex() if isinstance(value, bytes) else value


def _lines(report: AuditReport) -> Iterable[str]:
    verdict = "ok" if report.ok else f"BROKEN at seal {report.broken_at}" if report.broken_at else "BROKEN"
    yield (
        f"{report.org_id} {verdict}: {report.sealed} entries in {report.seals} seals,"
        f" {report.unsealed} not sealed yet; head {report.head}"
    )
    if report.gone:
        yield f"  {report.gone} of them, of before {report.kept_since:%Y-%m-%d}, are no longer kept"
    for problem in report.problems:
        which = f"seal {problem.seal_seq}" if problem.seal_seq else "the chain"
        entry = f", entry {problem.entry_id}" if problem.entry_id else ""
        yield f"  {which}{entry}: {problem.kind.replace('_', ' ')}, {problem.message}"
