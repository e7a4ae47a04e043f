"""`duly jobs logs`: the lines that a job logged, and those to come."""

from __future__ import annotations

import asyncio
from datetime import UTC
from uuid import UUID

from duly.cli.show import print_json, print_lines
from duly.store.job_logs import LogLine
from duly.wiring import Duly

_PACE = 1.0
_PAGE = 500


async def print_log(
    duly: Duly, org_id: UUID, job_id: UUID, *, attempt: int | None, follow: bool, as_json: bool
) -> None:
    """A line each, in their order; if that is wanted until the job has ended."""
    after: str | None = None
    ended = not follow
    while True:
        page = await duly.jobs.logs(org_id, job_id, attempt=attempt, after=after, limit=_PAGE)
        after = page.after
        for line in page.lines:
            print_json(line) if as_json else print_lines([_text(line)])
        if page.lines:
            continue
        if ended:
            return
        # The last lines of a job are written when it has ended: one more look.
        ended = (await duly.handle(job_id, org_id=org_id).status()).status.terminal
        await asyncio.sleep(_PACE)


def _text(line: LogLine) -> str:
    at = f"{line.logged_at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}"
    fields = "".join(f" {name}={value}" for name, value in line.fields.items())
    message = line.message.replace("\n", "\n    ")  # so that none looks like another line
    return f"{at} attempt {line.attempt} {line.level:<8} {message}{fields}"
