"""`ctx.log`: log lines are stored with the job, limited per attempt, without delaying it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from duly import Context, Duly, Handle, SyncContext
from duly.core.errors import ContractError, UnknownJob
from duly.db.database import Database
from duly.features.job_logs.service import LogPage
from duly.worker import job_log as lines
from duly.worker.claim import ClaimedJob
from duly.worker.job_log import FIRST, LAST, JobLog, JobLogWriter, NewLogLine
from tests.worker import isolated_jobs
from tests.worker.working import TWO_ATTEMPTS, WAIT_TIMEOUT, run_until_ended, working


async def _logs(app: Duly, handle: Handle[Any], **options: Any) -> LogPage:
    return await app.jobs.logs(handle.org_id, handle.job_id, **options)


async def test_log_lines_are_stored_with_the_job_and_listed_in_pages(app: Duly, acting: uuid.UUID) -> None:
    @app.job("log.twice", retry=TWO_ATTEMPTS)
    async def twice(ctx: Context) -> None:
        ctx.log.debug("below the level")
        extra = {"processed": 3, "customer": "Ada", "total": float("inf"), "failed": 10**400}
        ctx.log.info("pin=%s of %d rows", "4711", 3, extra=extra)
        ctx.log.warning("%d")
        try:
            raise ConnectionError("token=hunter2")
        except ConnectionError:
            ctx.log.exception("the shop\0 is away")
        if ctx.attempt == 1:
            raise ValueError("again")

    @app.job("log.sync")
    def sync_handler(ctx: SyncContext) -> None:
        ctx.log.info("x" * 3000)

    handle, sync_job = await twice.enqueue(), await sync_handler.enqueue()
    async with working(app):
        await handle.wait(WAIT_TIMEOUT)
        await sync_job.wait(WAIT_TIMEOUT)
    page = await _logs(app, handle)
    assert [(one.attempt, one.line_seq, one.level) for one in page.lines] == [
        (attempt, number, level)
        for attempt in (1, 2)
        for number, level in enumerate(("info", "warning", "error"), 1)
    ]
    assert [(one.message, one.fields) for one in page.lines[:3]] == [
        ("pin=[redacted] of 3 rows", {"processed": 3}),
        ("%d", {}),
        (
            "the shop� is away\nConnectionError: token=[redacted]",
            {"error_code": "connection_error", "error_class": "ConnectionError"},
        ),
    ]
    [long] = (await _logs(app, sync_job)).lines
    assert (len(long.message), long.message[-1]) == (2000, "…")
    job = await handle.status()
    moments = [job.created_at, *(one.logged_at for one in page.lines), job.finished_at]
    assert moments == sorted(moments), "by the clock of the database"

    first = await _logs(app, handle, limit=2, attempt=2)
    rest = await _logs(app, handle, limit=2, attempt=2, after=first.after)
    end = await _logs(app, handle, after=rest.after)
    assert (*first.lines, *rest.lines) == page.lines[3:]
    assert (end.lines, end.after) == ((), page.after)
    for wrong in ({"after": "x"}, {"after": "LTEgLTE="}, {"attempt": 0}, {"limit": 501}):
        with pytest.raises(ContractError):
            await _logs(app, handle, **wrong)
    with pytest.raises(UnknownJob):
        await app.jobs.logs(uuid.uuid4(), handle.job_id, after=page.after)


async def test_of_many_log_lines_the_first_and_the_last_are_stored(app: Duly, acting: uuid.UUID) -> None:
    @app.job("log.much")
    async def much(ctx: Context, count: int) -> None:
        for number in range(1, count + 1):
            ctx.log.info("line %d", number)

    handles = [await much.enqueue(FIRST + LAST), await much.enqueue(1000)]
    async with working(app):
        for handle in handles:
            await handle.wait(WAIT_TIMEOUT)
    whole, cut = [(await _logs(app, handle, limit=500)).lines for handle in handles]
    assert [one.message for one in whole] == [f"line {one.line_seq}" for one in whole]
    assert len(whole) == FIRST + LAST
    assert cut[FIRST].message == f"{1000 - FIRST - LAST} lines omitted"
    numbers = [*range(1, FIRST + 1), *range(1001 - LAST, 1001)]
    assert [one.message for one in (*cut[:FIRST], *cut[FIRST + 1 :])] == [f"line {n}" for n in numbers]


async def test_a_locked_log_table_delays_no_job(
    app: Duly, acting: uuid.UUID, sql: psycopg.Connection[Any]
) -> None:
    @app.job("log.on")
    async def on(ctx: Context) -> str:
        ctx.log.info("hello")
        return "done"

    handle = await on.enqueue()
    async with working(app):
        with sql.transaction():
            sql.execute("lock table duly.job_logs in access exclusive mode")
            assert await handle.result(WAIT_TIMEOUT) == "done"
            stored = sql.execute("select count(*) from duly.job_logs").fetchone()
            assert stored == (0,)
    assert [one.message for one in (await _logs(app, handle)).lines] == ["hello"]


async def test_log_lines_beyond_the_buffer_are_dropped_and_reported(
    database: Database,
    sql: psycopg.Connection[Any],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "_MAX_PENDING", 3)
    writer = JobLogWriter(database, logging.INFO)
    org, job = uuid.uuid4(), uuid.uuid4()
    writer.put([NewLogLine(org, job, 1, number, 0.0, "info", "x", {}) for number in range(1, 6)])
    sql.execute("revoke insert on duly.job_logs from duly_engine")
    await writer.close()
    sql.execute("grant insert on duly.job_logs to duly_engine")
    messages = [record.message for record in caplog.records]
    assert messages == [
        "dropped 2 job log lines: they could not be stored in time",
        "lost 3 job log lines",
    ]
    writer.put([NewLogLine(org, job, 1, 1, 0.0, "info", "x", {})] * 2)
    await writer.close()
    assert sql.execute("select count(*) from duly.job_logs").fetchone() == (1,), "one number, one line"


async def test_log_lines_of_a_killed_process_are_stored(isolated: Duly, acting: uuid.UUID) -> None:
    ended = await run_until_ended(isolated, handle := await isolated_jobs.log_then_hang.enqueue(), isolated=1)
    assert ended.error_code == "run.timeout"
    assert [one.message for one in (await _logs(isolated, handle)).lines] == ["about to hang"]


def test_a_log_line_has_the_location_of_its_caller_and_never_raises(caplog: pytest.LogCaptureFixture) -> None:
    class Sink(list[NewLogLine]):
        level = logging.WARNING

        def put(self, lines: Sequence[NewLogLine], *, last: bool = False) -> None:
            self.extend(lines)

    values = dict.fromkeys(ClaimedJob._fields) | {"job_type": "log.here", "job_id": uuid.UUID(int=1)}
    log = JobLog(ClaimedJob(**values), sink := Sink())  # type: ignore[arg-type]
    with caplog.at_level(logging.INFO):
        log.info("here", extra={"queue": "q", "job_id": "another"})
    with caplog.at_level(logging.CRITICAL):
        log.warning("%d rows", "not a number")
        log.error("%(rows)s rows", {"rows": 3})
    assert [line.message for line in sink] == ["log line could not be formatted: TypeError", "3 rows"]
    [record] = caplog.records
    assert (record.filename, record.name) == ("test_job_log.py", "duly.job.log.here")
    assert vars(record).items() >= {"queue": "q", "job_id": str(uuid.UUID(int=1))}.items()
