"""`duly jobs bulk`: one change for every job that fits."""

from __future__ import annotations

from typing import Annotated, Any, cast
from uuid import UUID

import typer

from duly.bulk import Impact, Verb
from duly.cli.application import run
from duly.cli.options import ActorName, AppName, AsJson, acting
from duly.cli.show import print_json, print_table
from duly.control.job_choice import Filters
from duly.model.job_query import filters, parse
from duly.model.states import Status
from duly.store.queues import Count

Match = Annotated[
    str,
    typer.Option(
        "--match",
        help="Which jobs, as in: status:failed type:report.* payload.region:DE. Everything, if empty.",
        show_default=False,
    ),
]


def matching(text: str) -> Filters:
    """What is typed there, as filters; a word alone is how the job type begins."""
    found = parse(text)
    word: dict[str, Any] = {} if found.word is None else {"job_type": f"{found.word.rstrip('*')}*"}
    return cast(Filters, word | filters(found.terms))


def bulk(
    verb: Annotated[Verb, typer.Argument(help="What is done to each.", show_default=False)],
    match: Match,
    org: Annotated[UUID | None, typer.Option("--org", envvar="DULY_ORG", help="The org it is about.")] = None,
    all_orgs: Annotated[bool, typer.Option("--all-orgs", help="The jobs of every org.")] = False,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; kept in the audit trail.")] = None,
    per_second: Annotated[float | None, typer.Option(help="Replays that come due a second.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would do.")] = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Cancel, replay or discard every job that fits, as a job; prints its id."""
    if (org is None) != all_orgs:
        raise typer.BadParameter("name an org, or say --all-orgs", param_hint="--org")
    wanted, who = matching(match), acting(actor)
    if dry_run:
        seen = run(app, lambda duly: duly.bulk.impact(org, verb, wanted, actor=who))
        print_json(seen) if as_json else _show(seen)
        return
    if reason is None:
        raise typer.BadParameter("say why, or --dry-run", param_hint="--reason")
    handle = run(
        app,
        lambda duly: duly.bulk.start(org, verb, wanted, actor=who, reason=reason, per_second=per_second),
    )
    print_json(handle) if as_json else print(handle.job_id)


def _show(seen: Impact) -> None:
    rows = [
        *((status, seen.verb.value, n) for status, n in seen.by_status.items()),
        *((status, "left alone", n) for status, n in seen.left.items()),
    ]
    print_table(rows, {"status": lambda row: row[0], "jobs": _number, "what": lambda row: row[1]})


def _number(row: tuple[Status, str, Count]) -> str:
    return f"{row[2].count}{'+' if row[2].at_least else ''}"
