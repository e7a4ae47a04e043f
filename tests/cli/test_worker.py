"""`duly worker`: real processes that run jobs, drain, crash and are replaced."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

import psycopg

from tests.cli.conftest import ROOT, CommandResult, Run, Service

Start = Callable[..., AbstractContextManager[Service]]
SHORT = {"DULY_WORKER_LEASE": "1", "DULY_WORKER_HEARTBEAT": "0.2"}


def _run_command(environment: dict[str, str], org: uuid.UUID, *args: str) -> CommandResult:
    """Run a command as a process; return its result."""
    process = subprocess.run(
        [sys.executable, "-m", "duly.cli", *args],
        cwd=ROOT,
        env={**environment, "DULY_ORG": str(org)},
        capture_output=True,
        text=True,
        check=False,
    )
    return CommandResult(process.returncode, process.stdout, process.stderr)


async def _enqueue(duly: Run, org: uuid.UUID, job_type: str) -> str:
    job_id: str = (await duly("enqueue", job_type, "--org", org, "--json")).document["job_id"]
    return job_id


def test_the_outcome_of_a_watched_job_is_the_exit_code(
    environment: dict[str, str], org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    run = partial(_run_command, environment, org)
    with service("--slots", "5", "--name", "worker-1") as running:
        running.read_until("ready ")
        submitted = run("enqueue", "shop.greet", "--payload", '{"name": "Ada"}', "--json").document
        result = run("jobs", "watch", submitted["job_id"], "--json")
        assert (result.code, result.document["outcome"]) == (0, "succeeded")
        failing = run("enqueue", "shop.sell", "--json").document["job_id"]
        failed = run("jobs", "watch", failing)
        assert failed.code == 1
        assert "out of stock" in failed.out
        assert sql.execute("select name, slots, stopped_at from duly.workers").fetchall() == [
            ("worker-1", 5, None)
        ]
        running.process.send_signal(signal.SIGINT)
        assert running.wait_for_exit() == 0
    assert sql.execute("select count(*) from duly.workers where stopped_at is null").fetchone() == (0,)


async def test_a_signal_drains_and_unfinished_jobs_are_released(
    duly: Run, org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    job_id = await _enqueue(duly, org, "shop.wait")
    with service(DULY_WORKER_DRAIN="0") as running:
        running.read_until("waiting")
        running.process.send_signal(signal.SIGTERM)
        assert running.wait_for_exit() == 0
    assert sql.execute("select status, attempt from duly.jobs where job_id = %s", [job_id]).fetchone() == (
        "queued",
        0,
    )


async def test_a_second_signal_kills_at_once(
    duly: Run, org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    job_id = await _enqueue(duly, org, "shop.wait")
    with service(DULY_WORKER_DRAIN="600") as running:
        running.read_until("waiting")
        # Two pending signals of the same kind can be merged into one.
        running.process.send_signal(signal.SIGTERM)
        running.process.send_signal(signal.SIGINT)
        assert running.wait_for_exit() == 70
    assert sql.execute("select status from duly.jobs where job_id = %s", [job_id]).fetchone() == ("running",)


async def test_a_handler_that_ends_its_process_does_not_end_the_service(
    duly: Run, org: uuid.UUID, service: Start
) -> None:
    with service("--json", **SHORT) as running:
        first = json.loads(running.read_until(""))
        assert first["event"] == "ready"
        job_id = await _enqueue(duly, org, "shop.crash")
        assert json.loads(running.read_until(""))["worker_id"] != first["worker_id"]
        line = json.loads(running.read_error("restarting"))
        assert (line["level"], line["logger"]) == ("error", "duly.cli")
        assert line["message"].startswith("a worker process ended with code 9;")
        result = await duly("jobs", "watch", job_id, "--org", org, "--json")
        assert (result.code, result.document["attempt"]) == (0, 2)


async def test_a_worker_process_collects_garbage_rarely_and_without_loaded_modules(
    duly: Run, org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    with service() as running:
        running.read_until("ready ")
        job_id = await _enqueue(duly, org, "shop.collector")
        await duly("jobs", "watch", job_id, "--org", org, "--json")
    query = "select result_payload from duly.job_results where job_id = %s"
    [[threshold, frozen]] = sql.execute(query, [job_id]).fetchone() or [[0, 0]]
    assert threshold == 50_000
    assert frozen > 10_000


def test_each_worker_process_registers_as_a_worker(service: Start, sql: psycopg.Connection[Any]) -> None:
    with service("--processes", "2", "--name", "worker-1", "--queues", "q:default,q:exports") as running:
        ready = {running.read_until("ready "), running.read_until("ready ")}
        rows = sql.execute("select worker_id::text, name, queues from duly.workers").fetchall()
        assert {row[0] for row in rows} == ready
        assert [row[1] for row in rows] == ["worker-1", "worker-1"]
        assert rows[0][2] == ["q:default", "q:exports"]
        running.process.terminate()
        assert running.wait_for_exit() == 0
    assert sql.execute("select count(*) from duly.workers where stopped_at is null").fetchone() == (0,)


async def test_a_process_that_an_operator_has_drained_is_not_replaced(
    duly: Run, service: Start, sql: psycopg.Connection[Any]
) -> None:
    with service("--processes", "2", **SHORT) as running:
        ready = {running.read_until("ready "), running.read_until("ready ")}
        for worker in ready:
            drained = await duly("workers", "drain", worker, "--reason", "a new version", "--json")
            assert (drained.code, drained.document["drain_reason"]) == (0, "a new version")
        assert running.wait_for_exit() == 0
    rows = sql.execute("select worker_id::text, stopped_at is not null from duly.workers").fetchall()
    assert dict(rows) == dict.fromkeys(ready, True)


def test_worker_processes_end_when_their_parent_is_killed(
    service: Start, sql: psycopg.Connection[Any]
) -> None:
    with service() as running:
        running.read_until("ready ")
        running.process.kill()
        # The child processes share the output: it ends with the last of them.
        running.process.communicate(timeout=60)
    assert sql.execute("select count(*) from duly.workers where stopped_at is null").fetchone() == (0,)


def test_a_killed_process_is_replaced(service: Start, sql: psycopg.Connection[Any]) -> None:
    with service() as running:
        first = running.read_until("ready ")
        row = sql.execute("select pid from duly.workers").fetchone()
        assert row
        os.kill(int(str(row[0])), signal.SIGTERM)
        assert running.read_until("ready ") != first


def test_a_permanent_failure_is_not_restarted(service: Start) -> None:
    for args, part in {
        ("--app", "tests.cli.nothing:app"): "tests.cli.nothing",
        ("--queues", "q:deadletter"): "queues: ",
    }.items():
        with service(*args) as running:
            _, error = running.process.communicate(timeout=60)
            assert running.process.returncode == 2
            assert error.startswith("error: ")
            assert part in error
            assert "Traceback" not in error


def test_a_worker_waits_for_an_unreachable_database(service: Start) -> None:
    with service(DULY_DATABASE_URL="postgresql://127.0.0.1:1/none", DULY_DATABASE_DIRECT_URL="") as running:
        for _ in range(2):
            assert running.read_error("error: ").endswith("(check DULY_DATABASE_URL and the server)\n")
        running.process.terminate()
        assert running.wait_for_exit() == 0
