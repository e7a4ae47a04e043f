"""`duly jobs bulk`: change all jobs that match."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from duly.cli.options import ActorOption, LoadedApp, OptionalOrg, OptionalReason, argument
from duly.cli.output import Output, columns, print_table
from duly.features.bulk.plan import Verb
from duly.features.bulk.service import Impact
from duly.features.jobs.filter import Filters
from duly.features.jobs.search_query import filters, parse
from duly.jobs.handle import Handle

Match = Annotated[
    str,
    typer.Option(
        "--match",
        metavar="QUERY",
        help="Filter by a query, as in status:failed type:report.* payload.region:DE.",
        show_default=False,
    ),
]


def matching(query: str) -> Filters:
    """Return the filters of a query; a word alone is the beginning of a job type."""
    found = parse(query)
    word: dict[str, Any] = {} if found.word is None else {"job_type": f"{found.word.rstrip('*')}*"}
    return cast(Filters, word | filters(found.terms))


async def bulk(
    app: LoadedApp,
    verb: Annotated[Verb, argument("Choose what to do with each job.")],
    match: Match,
    actor: ActorOption,
    org: OptionalOrg = None,
    all_orgs: Annotated[bool, typer.Option("--all-orgs", help="Select the jobs of every org.")] = False,
    reason: OptionalReason = None,
    per_second: Annotated[float | None, typer.Option(help="Limit the replays per second.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the jobs and change nothing.")] = False,
) -> Output | Handle[Any]:
    """Cancel, replay or discard all jobs that match, in a job; print its id."""
    if (org is None) != all_orgs:
        raise typer.BadParameter("name an org, or use --all-orgs", param_hint="--org")
    chosen = matching(match)
    if not dry_run and reason is None:
        raise typer.BadParameter("give a reason, or use --dry-run", param_hint="--reason")
    async with app:
        if dry_run or reason is None:
            impact = await app.bulk.impact(org, verb, chosen, actor=actor)
            return Output(impact, lambda: _print(impact))
        return await app.bulk.start(org, verb, chosen, actor=actor, reason=reason, per_second=per_second)


def _print(impact: Impact) -> None:
    print_table(
        [
            {"status": status, "jobs": f"{count.count}{'+' * count.at_least}", "action": action}
            for action, counts in ((impact.verb.value, impact.by_status), ("unchanged", impact.left))
            for status, count in counts.items()
        ],
        columns("status", "jobs", "action"),
    )
