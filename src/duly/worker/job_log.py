"""The job log: `ctx.log`, the writer that stores its lines in batches, and the statements."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from duly.core.error_report import describe_error
from duly.core.errors import StoreError
from duly.core.outcome import AttemptOutcome, Completed, Retried, Snoozed
from duly.db.database import Database, retry_transaction
from duly.db.pool import Connection
from duly.db.statements import statement
from duly.observability.logs import ids_of, safe_fields, safe_text

if TYPE_CHECKING:
    from duly.worker.claim import ClaimedJob

log = logging.getLogger("duly.worker")
FIRST, LAST = 200, 50
"""How many lines of an attempt are stored: the first ones at once, the last ones when it has ended."""
OFF = 2**31 - 1
"""A level above every line: nothing is stored."""
REFUSED_LINE_SEQ = 2**31 - 1
"""The number of the line that reports a late attempt: the highest there can be."""
_LEVELS = ((50, "critical"), (40, "error"), (30, "warning"), (20, "info"))
_WRITE_INTERVAL, _BATCH_DELAY, _RETRY_PAUSE = 0.5, 0.05, 1.0
_MAX_BATCH, _MAX_PENDING = 500, 5_000
_CLOSE_TIMEOUT = 2.0


class NewLogLine(NamedTuple):
    """A line to be stored."""

    org_id: UUID
    job_id: UUID
    attempt: int
    line_seq: int
    at: float
    """By the monotonic clock of this machine; the statement converts it to the database's time."""
    level: str
    message: str
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobLogLine:
    """A stored line."""

    attempt: int
    line_seq: int
    logged_at: datetime
    level: str
    message: str
    fields: dict[str, Any] = field(hash=False)


class LogPosition(NamedTuple):
    """The position of a line in the log of its job."""

    attempt: int = 0
    line_seq: int = 0


class JobLogSink(Protocol):
    """Where the lines go. It never blocks, and any thread may call it."""

    level: int
    """The minimum level of the lines it stores."""

    def put(self, lines: Sequence[NewLogLine], *, last: bool = False) -> None:
        """Store the lines soon; the last ones of an attempt at once."""


class JobLog(logging.LoggerAdapter[logging.Logger]):
    """A logger that adds the ids of the job to its lines and stores them with the job."""

    def __init__(self, job: ClaimedJob, sink: JobLogSink) -> None:
        super().__init__(logging.getLogger(f"duly.job.{job.job_type}"), ids_of(job))
        self._job = job
        self._sink = sink
        self._count = 0
        self._last: deque[NewLogLine] = deque(maxlen=LAST)
        self._lock = threading.Lock()

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the ids of the job to the fields of the line."""
        kwargs["extra"] = {**(kwargs.get("extra") or {}), **(self.extra or {})}
        return msg, kwargs

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log and store a line; every other logging method calls this one."""
        if level >= self._sink.level:
            self._store(level, msg, args, kwargs)
        # Attribute the line to the caller, not to this method.
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        super().log(level, msg, *args, **kwargs)

    def close(self) -> None:
        """Store the last lines of the ended attempt, and how many are missing before them."""
        with self._lock:
            last, omitted = list(self._last), self._count - FIRST - len(self._last)
            self._last.clear()
            if omitted > 0:
                # With the number of the first missing line.
                last.insert(0, self._line(FIRST + 1, logging.WARNING, f"{omitted} lines omitted", {}))
        self._sink.put(last, last=True)

    def _store(self, level: int, msg: object, args: tuple[object, ...], options: Mapping[str, Any]) -> None:
        text, fields = _text(msg, args), safe_fields(options.get("extra") or {})
        if (error := _error(options.get("exc_info"))) is not None:
            info = describe_error(error, job_type=self._job.job_type)
            text = f"{text}\n{info.error_class}: {info.message}"
            fields |= {"error_code": info.code, "error_class": info.error_class}
        text = safe_text(text)
        with self._lock:
            self._count += 1
            line = self._line(self._count, level, text, fields)
            if self._count > FIRST:
                self._last.append(line)
            else:
                # Inside the lock, so that the lines of several threads arrive in the order of their numbers.
                self._sink.put([line])

    def _line(self, number: int, level: int, text: str, fields: dict[str, Any]) -> NewLogLine:
        job = self._job
        name = next((name for minimum, name in _LEVELS if level >= minimum), "debug")
        return NewLogLine(job.org_id, job.job_id, job.attempt, number, time.monotonic(), name, text, fields)


_OUTCOME_NAMES: dict[type, str] = {Completed: "done", Retried: "retry", Snoozed: "snooze"}
"""How log lines call an outcome; stored lines keep these names."""


def refused_line(job: ClaimedJob, ending: AttemptOutcome | None) -> NewLogLine:
    """Return the line that reports an attempt that ended after it had lost its lease."""
    outcome = "lost" if ending is None else _OUTCOME_NAMES.get(type(ending), type(ending).__name__.lower())
    message = (
        f"attempt {job.attempt} came too late ({outcome}): it had already been ended, its writes were refused"
    )
    fields = {"status": "refused", "outcome": outcome}
    return NewLogLine(
        job.org_id, job.job_id, job.attempt, REFUSED_LINE_SEQ, time.monotonic(), "warning", message, fields
    )


def _text(msg: object, args: tuple[object, ...]) -> str:
    """Format the message as logging does; one that cannot be formatted must not harm the job."""
    try:
        # A single mapping fills `%(name)s`.
        values = args[0] if len(args) == 1 and isinstance(args[0], Mapping) and args[0] else args
        return str(msg) % values if args else str(msg)
    except Exception as error:
        return f"log line could not be formatted: {type(error).__name__}"


def _error(exc_info: Any) -> BaseException | None:
    if exc_info is True:
        exc_info = sys.exc_info()
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    return error if isinstance(error, BaseException) else None


class JobLogWriter:
    """Buffers lines of all jobs of a worker and stores them in batches; drops and counts what is too much."""

    def __init__(self, database: Database, level: int) -> None:
        self.level = level
        self._database = database
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._pending: list[NewLogLine] = []
        self._dropped = 0
        self._notified = False
        self._arrived, self._urgent = asyncio.Event(), asyncio.Event()

    def put(self, lines: Sequence[NewLogLine], *, last: bool = False) -> None:
        """Store the lines soon; the last ones of an attempt at once. Any thread may call it."""
        with self._lock:
            self._add(lines)
            notify, self._notified = last or not self._notified, True
        if notify:
            with suppress(RuntimeError):  # the loop is closed: the worker is gone
                self._loop.call_soon_threadsafe(self._notify, last)

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._arrived.wait()
            if not await self._write_pending():
                await asyncio.sleep(_RETRY_PAUSE)
                continue
            with suppress(TimeoutError):
                async with asyncio.timeout(_WRITE_INTERVAL):
                    await self._urgent.wait()
            # Where many attempts end, their lines are written together.
            await asyncio.sleep(_BATCH_DELAY)

    async def close(self) -> None:
        """Write the remaining lines, unless that takes too long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT):
                await self._write_pending()

    def _notify(self, last: bool) -> None:
        self._arrived.set()
        if last:
            self._urgent.set()

    async def _write_pending(self) -> bool:
        """Write all pending lines; return whether none is left."""
        while lines := self._take():
            try:
                await retry_transaction(partial(self._write, lines))
            except (psycopg.OperationalError, StoreError) as error:
                log.warning("could not store job log lines, retrying: %s", error)
                self._put_back(lines)
                return False
            except Exception:
                log.exception("lost %d job log lines", len(lines))
            except BaseException:
                self._put_back(lines)
                raise
        return True

    async def _write(self, lines: Sequence[NewLogLine]) -> None:
        async with self._database.engine() as conn:
            await write_lines(conn, lines)

    def _take(self) -> list[NewLogLine]:
        self._arrived.clear()
        self._urgent.clear()
        with self._lock:
            lines, self._pending = self._pending[:_MAX_BATCH], self._pending[_MAX_BATCH:]
            dropped, self._dropped, self._notified = self._dropped, 0, False
        if dropped:
            log.warning("dropped %d job log lines: they could not be stored in time", dropped)
        return lines

    def _put_back(self, lines: Sequence[NewLogLine]) -> None:
        with self._lock:
            later, self._pending = self._pending, []
            self._add([*lines, *later])
        self._arrived.set()

    def _add(self, lines: Sequence[NewLogLine]) -> None:
        accepted = lines[: max(_MAX_PENDING - len(self._pending), 0)]
        self._pending += accepted
        self._dropped += len(lines) - len(accepted)


async def write_lines(conn: Connection, lines: Sequence[NewLogLine]) -> None:
    """Insert the lines of many jobs; existing lines stay as they are."""
    now = time.monotonic()
    rows = [
        {
            "org_id": str(line.org_id),
            "job_id": str(line.job_id),
            "attempt": line.attempt,
            "line_seq": line.line_seq,
            "age": now - line.at,
            "level": line.level,
            "message": line.message,
            "fields": line.fields or None,
        }
        for line in lines
    ]
    await conn.execute(statement("job_logs/write"), {"lines": json.dumps(rows, allow_nan=False)})


async def read_lines(
    conn: Connection, org_id: UUID, job_id: UUID, after: LogPosition, *, attempt: int | None, limit: int
) -> list[JobLogLine]:
    """Return the next lines of a job in order, of all attempts or of one."""
    values = {"org_id": org_id, "job_id": job_id, "attempt": attempt, "limit": limit}
    async with conn.cursor(row_factory=class_row(JobLogLine)) as cursor:
        await cursor.execute(
            statement("job_logs/read"),
            {**values, "after_attempt": after.attempt, "after_seq": after.line_seq},
        )
        return await cursor.fetchall()
