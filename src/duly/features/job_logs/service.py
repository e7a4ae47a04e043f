"""Pages of the log lines of a job."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from duly.core.errors import ContractError
from duly.db.pool import Connection
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.worker import job_log
from duly.worker.job_log import JobLogLine, LogPosition

__all__ = ["JobLogLine", "LogPage", "read_log_page"]

_MAX_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LogPage:
    """A page of log lines; `after` is the cursor of the next page, also of lines that are still to come."""

    lines: tuple[JobLogLine, ...]
    """Empty if there are no more lines for now."""
    after: str | None
    """None while there is no line at all."""


async def read_log_page(
    conn: Connection, org_id: UUID, job_id: UUID, *, attempt: int | None, after: str | None, limit: int
) -> LogPage:
    """Return the next lines of a job, attempt by attempt, or of one attempt."""
    if attempt is not None and (type(attempt) is not int or not 1 <= attempt <= _MAX_INT32):
        raise ContractError(f"{attempt!r} is out of range", field="attempt", fix="use 1 or more")
    start, size = decode_cursor(after, _parse_position) or LogPosition(), page_size(limit)
    lines = await job_log.read_lines(conn, org_id, job_id, start, attempt=attempt, limit=size)
    return LogPage(tuple(lines), encode_cursor(lines[-1].attempt, lines[-1].line_seq) if lines else after)


def _parse_position(attempt: str, line_seq: str) -> LogPosition:
    position = LogPosition(int(attempt), int(line_seq))
    if not all(0 <= number <= _MAX_INT32 for number in position):
        raise ValueError("out of range")
    return position
