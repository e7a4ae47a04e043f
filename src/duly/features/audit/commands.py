"""Commands of the audit trail: `duly audit`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from uuid import UUID

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.exit_codes import ExitCode
from duly.cli.options import After, LoadedApp, OptionalOrg, Org, Paging, time_option
from duly.cli.output import Columns, Output, columns, print_json, print_lines
from duly.core import payload
from duly.features.audit.models import AuditPage, AuditReport
from duly.features.audit.verification import verify_export

audit = Group("audit", "Read, export and verify the audit trail.")
_COLUMNS: Columns = {
    **columns("occurred_at"),
    "actor": lambda entry: f"{entry.actor_type}:{entry.actor_id}",
    **columns("action"),
    "target": lambda entry: f"{entry.target_type} {entry.target_id}",
    **columns("reason"),
    "detail": lambda entry: entry.detail.get("summary") or entry.detail,
    **columns("entry_id"),
}


@audit.command("list", columns=_COLUMNS)
async def list_entries(
    duly: Duly,
    org: Org,
    paging: Paging,
    actor: Annotated[str | None, typer.Option(help="Filter by actor: an id, or as in user:anna.")] = None,
    action: Annotated[str | None, typer.Option(help="Filter by action, or by its first word.")] = None,
    target: Annotated[str | None, typer.Option(help="Filter by the id of the target.")] = None,
    since: Annotated[datetime | None, time_option("--since", "List entries since then.")] = None,
    until: Annotated[datetime | None, time_option("--until", "List entries before then.")] = None,
) -> AuditPage:
    """List the changes in an org with actor and reason, newest first."""
    return await duly.audit.list(
        org, actor=actor, action=action, target_id=target, since=since, until=until, **paging
    )


@audit.command()
async def verify(
    app: LoadedApp,
    org: OptionalOrg = None,
    all_orgs: Annotated[bool, typer.Option("--all", help="Verify every org.")] = False,
    expect: Annotated[
        str | None, typer.Option(help="Require this head of an earlier run in the chain.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="Verify an export instead of the database; - for stdin.")
    ] = None,
    retained_since: Annotated[
        datetime | None, time_option("--kept-since", "Accept that older sealed entries are gone from --file.")
    ] = None,
) -> Output:
    """Verify the audit trail against its seals.

    The exit code is 1 if an entry or a seal was changed.
    """
    if file is None and org is None and not all_orgs:
        raise typer.BadParameter("use --org, --all, or --file")
    if all_orgs and expect is not None:
        raise typer.BadParameter("a head belongs to one org: use it with --org", param_hint="--expect")
    if file is None:
        reports = await _reports(app, None if all_orgs else org, expect)
    else:
        reports = [*verify_export(_read_export(file), expect=expect, retained_since=retained_since)]
    code = ExitCode.OK if all(report.ok for report in reports) else ExitCode.CHECK_FAILED
    lines = [line for report in reports for line in _lines(report)]
    return Output({"reports": reports}, lambda: print_lines(lines), code)


@audit.command()
async def export(duly: Duly, org: Org) -> None:
    """Export all entries and seals of an org as JSON lines."""
    async for row in duly.audit.export(org):
        print_json({name: _hex(value) for name, value in row.items()})


@audit.command()
async def events(duly: Duly, org: Org, after: After = None) -> None:
    """Export the job events of an org as JSON lines, oldest first."""
    more = True
    while more:
        page = await duly.audit.events(org, limit=500, after=after)
        for event in page.events:
            print_json(event)
        after, more = page.after, page.more


def _read_export(file: Path) -> Iterable[dict[str, Any]]:
    """Return the lines of an export, parsed as strictly as payloads."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise typer.BadParameter(str(error), param_hint="--file") from None
    return [payload.parse_payload(line) for line in text.split("\n") if line.strip()]


async def _reports(app: Duly, org: UUID | None, expect: str | None) -> list[AuditReport]:
    async with app:
        if org is None:
            return [report async for report in app.audit.verify_all()]
        return [await app.audit.verify(org, expect=expect)]


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
        yield f"  {report.gone} of them, from before {report.kept_since:%Y-%m-%d}, are no longer stored"
    for problem in report.problems:
        where = f"seal {problem.seal_seq}" if problem.seal_seq else "the chain"
        entry = f", entry {problem.entry_id}" if problem.entry_id else ""
        yield f"  {where}{entry}: {problem.kind.replace('_', ' ')}, {problem.message}"
