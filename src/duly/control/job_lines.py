"""The lines that a job logged, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from duly.control.paging import cursor, page_size, place
from duly.model.errors import ContractError
from duly.store import job_logs
from duly.store.job_logs import LogLine, Position
from duly.store.pool import Connection

_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines of a job; `after` asks for those that follow, also for those that are still to come."""

    lines: tuple[LogLine, ...]
    """Empty when there are no more for now."""
    after: str | None
    """None as long as there was no line at all."""


async def read_lines(
    conn: Connection, org_id: UUID, job_id: UUID, *, attempt: int | None, after: str | None, limit: int
) -> LogPage:
    """The next lines of a job, attempt by attempt, or of one attempt alone."""
    if attempt is not None and (type(attempt) is not int or not 1 <= attempt <= _MOST):
        raise ContractError(f"{attempt!r} is out of range", field="attempt", fix="use 1 or more")
    start, size = place(after, _position) or Position(), page_size(limit)
    found = await job_logs.read(conn, org_id, job_id, start, attempt=attempt, limit=size)
    return LogPage(tuple(found), cursor(found[-1].attempt, found[-1].line_seq) if found else after)


def _position(attempt: str, line_seq: str) -> Position:
    read = Position(int(attempt), int(line_seq))
    if not all(0 <= number <= _MOST for number in read):
        raise ValueError("out of range")
    return read
