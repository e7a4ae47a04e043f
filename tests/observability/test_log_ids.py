"""The ids of log lines: loops that serve many jobs log the ids of none."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import uuid
from pathlib import Path
from typing import Any

import pytest

from duly import Duly, Fail, context
from duly.jobs.request_context import LogContextFilter, RequestContext, current_context
from duly.observability.logs import safe_fields
from duly.testing import FreshDatabase
from tests.worker.working import WAIT_TIMEOUT, working


async def test_shared_loops_log_no_ids_and_a_handler_logs_those_of_its_job(
    fresh: FreshDatabase, tmp_path: Path, acting: uuid.UUID, caplog: pytest.LogCaptureFixture
) -> None:
    app = Duly(database_url=fresh.direct_url, blobs_url=str(tmp_path), maintenance=False)

    @app.job("logging.once")
    async def once() -> None:
        logging.getLogger("shop").info("at work")
        raise Fail("no")

    started: list[tuple[asyncio.Task[Any], RequestContext]] = []

    def start(loop: asyncio.AbstractEventLoop, coro: Any, **options: Any) -> asyncio.Task[Any]:
        inside = contextvars.copy_context() if options.get("context") is None else options["context"]
        task = asyncio.Task(coro, loop=loop, **options)
        started.append((task, inside.run(current_context)))
        return task

    asyncio.get_running_loop().set_task_factory(start)
    caplog.handler.addFilter(ids := LogContextFilter())
    caplog.set_level(logging.INFO)
    try:
        async with app:
            with context(request_id="req-9"):
                # The same job twice at once: a lone enqueue starts no task.
                handle, _ = await asyncio.gather(once.enqueue(), once.enqueue())
                async with working(app):
                    await handle.wait(WAIT_TIMEOUT)
    finally:
        caplog.handler.removeFilter(ids)
        asyncio.get_running_loop().set_task_factory(None)
    tasks = [(task.get_name(), task_context.request_id) for task, task_context in started]
    shared = [(name, request) for name, request in tasks if name.startswith("duly-")]
    assert {"duly-worker-0", "duly-enqueue-batcher", "duly-claimer", "duly-job-log"} <= {
        name for name, _ in shared
    }
    assert {name for name, request in shared if request} == set()
    [handler_line] = [vars(record) for record in caplog.records if record.name == "shop"]
    assert (handler_line["job_id"], handler_line["request_id"]) == (str(handle.job_id), "req-9")
    [failed] = [safe_fields(vars(record)) for record in caplog.records if record.name == "duly.worker"]
    assert (failed["job_id"], failed["error_class"]) == (handler_line["job_id"], "Fail")
    assert (
        failed["where"] == f"tests/observability/test_log_ids.py:{once.handler.__code__.co_firstlineno + 3}"
    )
