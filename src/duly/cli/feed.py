"""`duly feed`."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from duly.cli.application import run
from duly.cli.options import AppName, Org
from duly.cli.show import print_json
from duly.wiring import Duly


def feed(
    org: Org,
    after: Annotated[
        str | None,
        typer.Option("--after", help="The cursor of the last event you have; else from the oldest."),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", help="Only what comes from now on; goes with --follow.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Wait for those to come, until interrupted.")
    ] = False,
    app: AppName = None,
    as_json: Annotated[bool, typer.Option("--json", help="As always here: a line of JSON an event.")] = True,
) -> None:
    """Every event of an org in the order of commits, a line of JSON each; its `cursor` goes on from there."""
    with suppress(KeyboardInterrupt):  # the way to end a feed
        run(app, lambda duly: _print(duly, org, after, new=new, follow=follow))


async def _print(duly: Duly, org: Org, after: str | None, *, new: bool, follow: bool) -> None:
    if new:
        after = await duly.feed.tip(org)
    if follow:
        async for event in duly.feed.follow(org, after):
            print_json(event)
    more = True
    while more:
        page = await duly.feed.read(org, after, 500)
        for event in page.events:
            print_json(event)
        after, more = page.after, page.more
