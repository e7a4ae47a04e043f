"""`duly jobs bulk`."""

from __future__ import annotations

from typing import Annotated, Any, cast

import typer

from duly.cli.options import ActorOption, LoadedApp, OptionalOrg, OptionalReason, argument
from duly.cli.output import Output, columns, print_table
from duly.features.bulk.plan import Verb
from duly.features.bulk.service import Impact
from duly.features.jobs.filter import JobFilterKeywords
from duly.features.jobs.search_query import parse_query, term_filters
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


def parse_match(text: str) -> JobFilterKeywords:
    """Return the filters of a query; a word alone is the prefix of a job type."""
    query = parse_query(text)
    word: dict[str, Any] = {} if query.word is None else {"job_type": f"{query.word.rstrip('*')}*"}
    return cast(JobFilterKeywords, word | term_filters(query.terms))


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
    filters = parse_match(match)
    if not dry_run and reason is None:
        raise typer.BadParameter("give a reason, or use --dry-run", param_hint="--reason")
    async with app:
        if dry_run or reason is None:
            impact = await app.bulk.impact(org, verb, filters, actor=actor)
            return Output(impact, lambda: _print(impact))
        return await app.bulk.start(org, verb, filters, actor=actor, reason=reason, per_second=per_second)


def _print(impact: Impact) -> None:
    print_table(
        [
            {"status": status, "jobs": f"{count.count}{'+' * count.at_least}", "action": action}
            for action, counts in ((impact.verb.value, impact.by_status), ("unchanged", impact.left))
            for status, count in counts.items()
        ],
        columns("status", "jobs", "action"),
    )
