"""The log of a whole installation: every line has its ids, and no line has a payload or a secret."""

from __future__ import annotations

import json
import signal
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import httpx

from duly import Client
from duly.observability.logs import IDS
from tests.cli.conftest import Run, Service

Start = Callable[..., AbstractContextManager[Service]]
OTHERS = ("time", "level", "logger", "message", "pid", "trace_id", "processed", "exception")
SECRET = "Zaubertrank-des-Miraculix"
KINDS = ("talk.loop", "talk.thread", "talk.process", "talk.badly")
TALKING = {"DULY_APP": "tests.cli.talking:app", "DULY_LOG_FORMAT": "json", "DULY_LOG_LEVEL": "debug"}


async def test_log_lines_have_ids_and_no_payloads(service: Start, duly: Run) -> None:
    with service("--port", "0", "--json", command="up", **TALKING, DULY_WORKER_ISOLATED="1") as up:
        ready = json.loads(up.until(""))
        with Client(ready["url"], ready["key"]) as client:
            jobs = {kind: client.submit(kind, {"text": SECRET}, subject_id=SECRET) for kind in KINDS}
            ended = {kind: job.wait(60) for kind, job in jobs.items()}
        _ask_in_vain(ready["url"], ready["key"])
        up.process.send_signal(signal.SIGINT)
        err = up.process.communicate(timeout=60)[1]
    lines = [json.loads(line) for line in err.splitlines()]
    told = json.dumps(lines, ensure_ascii=False)
    assert SECRET not in told
    assert ready["key"].rpartition("_")[2] not in told

    for kind, job in ended.items():
        ids = {name: getattr(job, name) for name in ("request_id", "correlation_id", "job_type")}
        ids |= {"job_id": str(job.job_id), "org_id": ready["org_id"], "attempt": 1}
        mine = [line for line in lines if line["logger"] in ("shop", f"duly.job.{kind}")]
        mine = [line for line in mine if line.get("job_id") == str(job.job_id)]
        assert {line["message"] for line in mine} >= {"looking", "at work with secret=[redacted]"}
        for line in mine:
            assert line.items() >= ids.items(), line
            assert set(line) <= {*IDS, *OTHERS}
    [died] = [line for line in lines if line["message"].startswith("job ") and line["level"] == "error"]
    assert (died["job_id"], died["error_code"]) == (str(ended["talk.badly"].job_id), "value_error")
    assert len({line["pid"] for line in lines if line["logger"] == "shop"}) == 2

    _check_access(lines, ready["org_id"])
    await _check_kept(duly, ready["org_id"], {kind: str(job.job_id) for kind, job in ended.items()})


def _ask_in_vain(url: str, key: str) -> None:
    """Requests whose secret is in the path, in the query, in the body and in the credential."""
    auth = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{url}/v1/jobs/{SECRET}", headers=auth).status_code == 422
    assert httpx.get(f"{url}/v1/jobs", params={"subject_id": SECRET}, headers=auth).status_code == 200
    assert httpx.get(f"{url}/{SECRET}?{SECRET}", headers=auth).status_code == 404
    wrong = {"job_type": "talk.loop", "payload": {"text": [SECRET], SECRET: 1}}
    assert httpx.post(f"{url}/v1/jobs", json=wrong, headers=auth).status_code == 422
    assert httpx.get(f"{url}/v1/jobs", headers={"authorization": f"Bearer {SECRET}"}).status_code == 401


def _check_access(lines: list[dict[str, Any]], org_id: str) -> None:
    """One line for each request."""
    access = [line for line in lines if line["logger"] == "duly.http.access"]
    assert len({line["request_id"] for line in access}) == len(access)
    asked = [(line["method"], line["route"], line["status"]) for line in access]
    assert asked.count(("POST", "/v1/jobs", 202)) == len(KINDS)
    assert asked[-5:] == [
        ("GET", "/v1/jobs/{job_id}", 422),
        ("GET", "/v1/jobs", 200),
        ("GET", "(no route)", 404),
        ("POST", "/v1/jobs", 422),
        ("GET", "/v1/jobs", 401),
    ]
    assert {line.get("org_id") for line in access} == {org_id, None}
    assert all(line["duration_ms"] > 0 for line in access)
    assert not [line for line in lines if line["logger"] == "uvicorn.access"]


async def _check_kept(duly: Run, org_id: str, jobs: dict[str, str]) -> None:
    """What the jobs logged about themselves is shown by the program."""
    for kind, job_id in jobs.items():
        followed = ["--follow"] if kind == "talk.loop" else []
        shown = await duly("jobs", "logs", job_id, "--org", org_id, "--json", *followed)
        lines = [json.loads(line) for line in shown.out.splitlines()]
        assert SECRET not in shown.out
        assert (lines[0]["message"], lines[0]["fields"]) == ("kept, api_key: [redacted]", {"processed": 1})
        assert [line["level"] for line in lines] == ["info", *(["error"] if kind == "talk.badly" else [])]
    text = await duly("jobs", "logs", jobs["talk.badly"], "--org", org_id, "--attempt", 1)
    first, second, third = text.out.splitlines()
    assert first.endswith("attempt 1 info     kept, api_key: [redacted] processed=1")
    assert (second.split()[-2:], third.split()[0]) == (["no", "number"], "ValueError:")
    unknown = await duly("jobs", "logs", uuid.uuid4(), "--org", org_id)
    assert (unknown.code, "no job" in unknown.err) == (3, True)
