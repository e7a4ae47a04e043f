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

from tests.cli.conftest import ROOT, Ended, Run, Service

Start = Callable[..., AbstractContextManager[Service]]
SHORT = {"DULY_WORKER_LEASE": "1", "DULY_WORKER_HEARTBEAT": "0.2"}


def _program(environment: dict[str, str], org: uuid.UUID, *words: str) -> Ended:
    """The program as its users run it."""
    done = subprocess.run(
        [sys.executable, "-m", "duly.cli", *words],
        cwd=ROOT,
        env={**environment, "DULY_ORG": str(org)},
        capture_output=True,
        text=True,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


async def _enqueue(duly: Run, org: uuid.UUID, job_type: str) -> str:
    job_id: str = (await duly("enqueue", job_type, "--org", org, "--json")).document["job_id"]
    return job_id


def test_the_outcome_of_a_watched_job_is_the_exit_code(
    environment: dict[str, str], org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    tell = partial(_program, environment, org)
    with service("--slots", "5", "--name", "till") as till:
        till.until("ready ")
        made = tell("enqueue", "shop.greet", "--payload", '{"name": "Ada"}', "--json").document
        watched = tell("jobs", "watch", made["job_id"], "--json")
        assert (watched.code, watched.document["outcome"]) == (0, "succeeded")
        failing = tell("enqueue", "shop.sell", "--json").document["job_id"]
        failed = tell("jobs", "watch", failing)
        assert failed.code == 1
        assert "out of stock" in failed.out
        assert sql.execute("select name, slots, stopped_at from duly.workers").fetchall() == [
            ("till", 5, None)
        ]
        till.process.send_signal(signal.SIGINT)
        assert till.end() == 0
    assert sql.execute("select count(*) from duly.workers where stopped_at is null").fetchone() == (0,)


async def test_a_signal_drains_and_unfinished_jobs_are_released(
    duly: Run, org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    job_id = await _enqueue(duly, org, "shop.wait")
    with service(DULY_WORKER_DRAIN="0") as till:
        till.until("waiting")
        till.process.send_signal(signal.SIGTERM)
        assert till.end() == 0
    assert sql.execute("select status, attempt from duly.jobs where job_id = %s", [job_id]).fetchone() == (
        "queued",
        0,
    )


async def test_a_second_signal_kills_at_once(
    duly: Run, org: uuid.UUID, service: Start, sql: psycopg.Connection[Any]
) -> None:
    job_id = await _enqueue(duly, org, "shop.wait")
    with service(DULY_WORKER_DRAIN="600") as till:
        till.until("waiting")
        # Two of a kind may become one on their way.
        till.process.send_signal(signal.SIGTERM)
        till.process.send_signal(signal.SIGINT)
        assert till.end() == 70
    assert sql.execute("select status from duly.jobs where job_id = %s", [job_id]).fetchone() == ("running",)


async def test_a_handler_that_ends_its_process_does_not_end_the_service(
    duly: Run, org: uuid.UUID, service: Start
) -> None:
    with service("--json", **SHORT) as till:
        first = json.loads(till.until(""))
        assert first["event"] == "ready"
        job_id = await _enqueue(duly, org, "shop.crash")
        assert json.loads(till.until(""))["worker_id"] != first["worker_id"]
        line = json.loads(till.complaint("restarting"))
        assert (line["level"], line["logger"]) == ("error", "duly.cli")
        assert line["message"].startswith("a worker process ended with code 9;")
        watched = await duly("jobs", "watch", job_id, "--org", org, "--json")
        assert (watched.code, watched.document["attempt"]) == (0, 2)


def test_two_processes_are_two_workers(service: Start, sql: psycopg.Connection[Any]) -> None:
    with service("--processes", "2", "--name", "till", "--queues", "q:default,q:exports") as till:
        ready = {till.until("ready "), till.until("ready ")}
        found = sql.execute("select worker_id::text, name, queues from duly.workers").fetchall()
        assert {row[0] for row in found} == ready
        assert [row[1] for row in found] == ["till", "till"]
        assert found[0][2] == ["q:default", "q:exports"]
        till.process.terminate()
        assert till.end() == 0
    assert sql.execute("select count(*) from duly.workers where stopped_at is null").fetchone() == (0,)


async def test_a_process_that_an_operator_has_drained_is_not_replaced(
    duly: Run, service: Start, sql: psycopg.Connection[Any]
) -> None:
    with service("--processes", "2", **SHORT) as till:
        ready = {till.until("ready "), till.until("ready ")}
        for worker in ready:
            asked = await duly("workers", "drain", worker, "--reason", "a new version", "--json")
            assert (asked.code, asked.document["drain_reason"]) == (0, "a new version")
        assert till.end() == 0
    rows = sql.execute("select worker_id::text, stopped_at is not null from duly.workers").fetchall()
    assert dict(rows) == dict.fromkeys(ready, True)


def test_worker_processes_end_when_their_parent_is_killed(
    service: Start, sql: psycopg.Connection[Any]
) -> None:
    with service() as till:
        till.until("ready ")
        till.process.kill()
        # The output is theirs too: it ends with the last of them.
        till.process.communicate(timeout=60)
    assert sql.execute("select count(*) from duly.workers where stopped_at is null").fetchone() == (0,)


def test_a_killed_process_is_replaced(service: Start, sql: psycopg.Connection[Any]) -> None:
    with service() as till:
        first = till.until("ready ")
        row = sql.execute("select pid from duly.workers").fetchone()
        assert row
        os.kill(int(str(row[0])), signal.SIGTERM)
        assert till.until("ready ") != first


def test_a_permanent_failure_is_not_restarted(service: Start) -> None:
    for words, part in {
        ("--app", "tests.cli.nothing:app"): "tests.cli.nothing",
        ("--queues", "q:deadletter"): "queues: ",
    }.items():
        with service(*words) as till:
            _, said = till.process.communicate(timeout=60)
            assert till.process.returncode == 2
            assert said.startswith("error: ")
            assert part in said
            assert "Traceback" not in said


def test_a_worker_waits_for_an_unreachable_database(service: Start) -> None:
    with service(DULY_DATABASE_URL="postgresql://127.0.0.1:1/none", DULY_DATABASE_DIRECT_URL="") as till:
        for _ in range(2):
            assert till.complaint("error: ").endswith("(check DULY_DATABASE_URL and the server)\n")
        till.process.terminate()
        assert till.end() == 0
