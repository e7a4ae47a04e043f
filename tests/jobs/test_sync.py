"""The sync API: scripts, threads and forked processes."""

from __future__ import annotations

import asyncio
import contextvars
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from duly import Actor, Duly, Job, context, errors

_HEAD = """
import os, sys
from duly import Actor, Duly, context

app = Duly()

@app.job("report.build")
def build(region: str) -> None: ...

"""

_SCRIPT = f"""{_HEAD}
with context(org_id=sys.argv[1], actor=Actor.system("script")):
    print(build.enqueue_sync("DE").status().status)
"""

_FORKING = f"""{_HEAD}
with context(org_id=sys.argv[1], actor=Actor.system("script")):
    first = build.enqueue_sync("parent")
    child = os.fork()
    if child == 0:
        own = build.enqueue_sync("child")
        assert own.created and first.status().status == "queued"
        app.close_sync()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not build.enqueue_sync("child").created
    assert build.enqueue_sync("parent again").status().status == "queued"
app.close_sync()
"""


def run(script: str, app: Duly, org: uuid.UUID) -> subprocess.CompletedProcess[str]:
    settings = app.settings.model_dump(
        include={"database_url", "database_direct_url", "blobs_url"}, exclude_none=True
    )
    environ = {**os.environ, **{f"DULY_{name.upper()}": value for name, value in settings.items()}}
    # This tests a fork beside threads, about which newer versions of Python warn.
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", script, str(org)]
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture
def script(app: Duly) -> Iterator[Duly]:
    """An application whose sync resources are closed after the test."""
    yield app
    app.close_sync()


@pytest.fixture
def build(script: Duly, acting: uuid.UUID) -> Job[[str], int]:
    @script.job("report.build")
    def build(region: str) -> int:
        return len(region)

    return build


def test_a_script_enqueues_and_reads_the_status(build: Job[[str], int], acting: uuid.UUID) -> None:
    handle = build.enqueue_sync("DE")
    job = handle.status()
    assert (handle.created, handle.org_id, job.job_id) == (True, acting, handle.job_id)
    assert (job.status, job.actor_id, job.request_id) == ("queued", "u1", "req-1")
    assert not build.enqueue_sync("DE").created


def test_a_script_enqueues_many(script: Duly, build: Job[[str], int]) -> None:
    handles = script.enqueue_many_sync([build.call("DE"), build.call("FR"), build.call("DE")])
    assert [h.created for h in handles] == [True, True, False]
    assert script.enqueue_many_sync([]) == []


def test_a_script_finds_a_job_by_its_id(script: Duly, build: Job[[str], int]) -> None:
    handle = build.enqueue_sync("DE")
    assert script.handle_sync(str(handle.job_id)).status() == handle.status()
    with pytest.raises(errors.UnknownJob):
        script.handle_sync(uuid.uuid4()).status()


def test_waiting_in_a_script_times_out(build: Job[[str], int]) -> None:
    handle = build.enqueue_sync("DE")
    for wait in (handle.wait, handle.result):
        with pytest.raises(errors.WaitTimeout, match="is still active after"):
            wait(0.05)


def test_a_script_cancels_a_job(build: Job[[str], int]) -> None:
    handle = build.enqueue_sync("DE")
    assert handle.cancel("no longer needed") == "canceled"
    assert handle.wait(30).cancel_reason == "no longer needed"
    with pytest.raises(errors.JobCanceled, match="no longer needed"):
        handle.result(30)


def test_a_script_reads_events_until_the_job_ends(build: Job[[str], int]) -> None:
    handle = build.enqueue_sync("DE")
    received = []
    for event in handle.events():
        received.append((event.event_seq, event.event_type))
        if event.event_type == "job.queued":
            handle.cancel("enough")
    assert received == [(1, "job.queued"), (2, "job.canceled")]
    assert [e.event_seq for e in handle.events(after=1)] == [2]


def test_a_script_may_close_an_event_stream(build: Job[[str], int]) -> None:
    stream = build.enqueue_sync("DE").events()
    assert next(stream).event_type == "job.queued"
    stream.close()
    assert list(stream) == []


def test_errors_are_raised_unchanged_by_sync_calls(build: Job[[str], int]) -> None:
    with pytest.raises(errors.UnknownOrg) as caught:
        build.options(org_id=uuid.uuid4()).enqueue_sync("DE")
    assert (caught.value.field, caught.value.fix) == ("org_id", "create the org first")


def test_a_closed_app_reopens_on_use(script: Duly, build: Job[[str], int]) -> None:
    handle = build.enqueue_sync("DE")
    script.close_sync()
    script.close_sync()
    assert handle.status().status == "queued"


def test_closing_leaves_no_thread_behind(script: Duly, build: Job[[str], int]) -> None:
    before = set(threading.enumerate())
    build.enqueue_sync("DE")
    portals = {t for t in set(threading.enumerate()) - before if t.name == "duly-portal"}
    assert len(portals) == 1
    script.close_sync()
    assert not portals & set(threading.enumerate())


def test_many_threads_share_one_app(build: Job[[str], int], sql: psycopg.Connection) -> None:
    start = threading.Barrier(8)

    def work(number: int) -> uuid.UUID:
        start.wait()
        handle = build.enqueue_sync("same")
        build.enqueue_sync(f"own {number}")
        assert handle.status().status == "queued"
        return handle.job_id

    with ThreadPoolExecutor(8) as threads:
        running = [threads.submit(contextvars.copy_context().run, work, n) for n in range(8)]
    assert len({r.result() for r in running}) == 1
    assert sql.execute("select count(*) from duly.job_records").fetchone() == (9,)


def test_a_new_thread_has_no_context(build: Job[[str], int], acting: uuid.UUID) -> None:
    def enqueue_in_context() -> str:
        with context(org_id=acting, actor=Actor.user("u2")):
            return build.enqueue_sync("DE").status().actor_id

    with ThreadPoolExecutor(1) as threads:
        with pytest.raises(errors.MissingField, match="org_id"):
            threads.submit(build.enqueue_sync, "DE").result()
        assert threads.submit(enqueue_in_context).result() == "u2"


def test_each_call_uses_the_context_of_its_block(build: Job[[str], int]) -> None:
    with context(actor=Actor.user("u2"), request_id="req-2"):
        inner = build.enqueue_sync("DE").status()
    outer = build.enqueue_sync("FR").status()
    assert (inner.actor_id, inner.request_id) == ("u2", "req-2")
    assert (outer.actor_id, outer.request_id) == ("u1", "req-1")


async def test_a_thread_enqueues_while_a_loop_runs(script: Duly, build: Job[[str], int]) -> None:
    threaded, own = await asyncio.gather(asyncio.to_thread(build.enqueue_sync, "DE"), build.enqueue("FR"))
    assert (await asyncio.to_thread(threaded.status)).job_id == threaded.job_id
    assert (await script.handle(threaded.job_id).status()).status == "queued"
    assert (await asyncio.to_thread(script.handle_sync(own.job_id).status)).status == "queued"


async def test_sync_calls_work_inside_a_running_loop(build: Job[[str], int]) -> None:
    assert build.enqueue_sync("DE").status().status == "queued"


def test_a_script_that_does_not_close_its_app_exits_cleanly(app: Duly, org: uuid.UUID) -> None:
    finished = run(_SCRIPT, app, org)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "queued\n", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_opens_its_own_connections(
    app: Duly, org: uuid.UUID, sql: psycopg.Connection
) -> None:
    finished = run(_FORKING, app, org)
    assert (finished.returncode, finished.stderr) == (0, "")
    rows = sql.execute("select payload ->> 'region' from duly.job_records order by 1").fetchall()
    assert [row[0] for row in rows] == ["child", "parent", "parent again"]
