"""`duly events`."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.app import Duly
from duly.cli.command import Group
from duly.cli.options import After, Org
from duly.cli.output import print_json

events = Group("events", "Read the event feed of an org.")


@events.command("list", stream=True)
async def list_events(
    duly: Duly,
    org: Org,
    after: After = None,
    new: Annotated[bool, typer.Option("--new", help="Skip the events so far; use it with --follow.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for new events until Ctrl-C.")] = False,
) -> None:
    """List all events of an org in commit order as JSON lines.

    The `cursor` of an event is the --after that continues behind it.
    """
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
