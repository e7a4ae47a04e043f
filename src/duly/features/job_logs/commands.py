"""`duly jobs logs`."""

from __future__ import annotations

import asyncio
from datetime import UTC
from typing import Annotated

import typer

from duly.app import Duly
from duly.cli.options import AsJson, JobId, Org
from duly.cli.output import print_json, print_lines
from duly.worker.job_log import JobLogLine

_POLL_INTERVAL = 1.0
_PAGE_SIZE = 500


async def logs(
    duly: Duly,
    job_id: JobId,
    org: Org,
    attempt: Annotated[int | None, typer.Option(min=1, help="Filter by attempt.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more until the job ends.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the log lines that a job wrote with `ctx.log`."""
    after: str | None = None
    ended = not follow
    while True:
        page = await duly.jobs.logs(org, job_id, attempt=attempt, after=after, limit=_PAGE_SIZE)
        after = page.after
        for line in page.lines:
            print_json(line) if as_json else print_lines([_text(line)])
        if page.lines:
            continue
        if ended:
            return
        # The last lines of a job are written when it has ended: look once more.
        ended = (await duly.handle(job_id, org_id=org).status()).status.terminal
        await asyncio.sleep(_POLL_INTERVAL)


def _text(line: JobLogLine) -> str:
    at = f"{line.logged_at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    fields = "".join(f" {name}={value}" for name, value in line.fields.items())
    message = line.message.replace("\n", "\n    ")  # so that no part looks like another line
    return f"{at} attempt {line.attempt} {line.level:<8} {message}{fields}"
