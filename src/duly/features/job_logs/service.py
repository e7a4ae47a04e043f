"""The lines that a job logged, a page at a time."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from duly.core.errors import ContractError
from duly.db.pool import Connection
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.worker import job_log as job_logs
from duly.worker.job_log import JobLogLine, LogPosition

__all__ = ["JobLogLine", "LogPage", "read_lines"]

_MOST = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LogPage:
    """Some lines of a job; `after` asks for those that follow, also for those that are still to come."""

    lines: tuple[JobLogLine, ...]
    """Empty when there are no more for now."""
    after: str | None
    """None as long as there was no line at all."""


async def read_lines(
    conn: Connection, org_id: UUID, job_id: UUID, *, attempt: int | None, after: str | None, limit: int
) -> LogPage:
    """The next lines of a job, attempt by attempt, or of one attempt alone."""
    if attempt is not None and (type(attempt) is not int or not 1 <= attempt <= _MOST):
        raise ContractError(f"{attempt!r} is out of range", field="attempt", fix="use 1 or more")
    start, size = decode_cursor(after, _position) or LogPosition(), page_size(limit)
    found = await job_logs.read_lines(conn, org_id, job_id, start, attempt=attempt, limit=size)
    return LogPage(tuple(found), encode_cursor(found[-1].attempt, found[-1].line_seq) if found else after)


def _position(attempt: str, line_seq: str) -> LogPosition:
    read = LogPosition(int(attempt), int(line_seq))
    if not all(0 <= number <= _MOST for number in read):
        raise ValueError("out of range")
    return read
