"""The log of a whole installation: every line has the ids of its job, and none a payload or a secret."""

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
OTHER_FIELDS = ("time", "level", "logger", "message", "pid", "trace_id", "processed", "exception")
SECRET = "Zaubertrank-des-Miraculix"
JOB_TYPES = ("logging.loop", "logging.thread", "logging.process", "logging.failing")
LOGGING_APP = {"DULY_APP": "tests.cli.logging_app:app", "DULY_LOG_FORMAT": "json", "DULY_LOG_LEVEL": "debug"}


async def test_log_lines_have_ids_and_no_payloads(service: Start, duly: Run) -> None:
    with service("--port", "0", "--json", command="up", **LOGGING_APP, DULY_WORKER_ISOLATED="1") as running:
        ready = json.loads(running.read_until(""))
        with Client(ready["url"], ready["key"]) as client:
            jobs = {
                job_type: client.submit(job_type, {"text": SECRET}, subject_id=SECRET)
                for job_type in JOB_TYPES
            }
            ended = {job_type: job.wait(60) for job_type, job in jobs.items()}
        _send_failing_requests(ready["url"], ready["key"])
        running.process.send_signal(signal.SIGINT)
        err = running.process.communicate(timeout=60)[1]
    lines = [json.loads(line) for line in err.splitlines()]
    log_text = json.dumps(lines, ensure_ascii=False)
    assert SECRET not in log_text
    assert ready["key"].rpartition("_")[2] not in log_text

    for job_type, job in ended.items():
        ids = {name: getattr(job, name) for name in ("request_id", "correlation_id", "job_type")}
        ids |= {"job_id": str(job.job_id), "org_id": ready["org_id"], "attempt": 1}
        lines_of_job = [line for line in lines if line["logger"] in ("shop", f"duly.job.{job_type}")]
        lines_of_job = [line for line in lines_of_job if line.get("job_id") == str(job.job_id)]
        assert {line["message"] for line in lines_of_job} >= {"started", "at work with secret=[redacted]"}
        for line in lines_of_job:
            assert line.items() >= ids.items(), line
            assert set(line) <= {*IDS, *OTHER_FIELDS}
    [failed] = [line for line in lines if line["message"].startswith("job ") and line["level"] == "error"]
    assert (failed["job_id"], failed["error_code"]) == (str(ended["logging.failing"].job_id), "value_error")
    assert len({line["pid"] for line in lines if line["logger"] == "shop"}) == 2

    _check_access(lines, ready["org_id"])
    await _check_job_logs(
        duly, ready["org_id"], {job_type: str(job.job_id) for job_type, job in ended.items()}
    )


def _send_failing_requests(url: str, key: str) -> None:
    """Send requests with the secret in the path, in the query, in the body and in the credential."""
    auth = {"authorization": f"Bearer {key}"}
    assert httpx.get(f"{url}/v1/jobs/{SECRET}", headers=auth).status_code == 422
    assert httpx.get(f"{url}/v1/jobs", params={"subject_id": SECRET}, headers=auth).status_code == 200
    assert httpx.get(f"{url}/{SECRET}?{SECRET}", headers=auth).status_code == 404
    invalid = {"job_type": "logging.loop", "payload": {"text": [SECRET], SECRET: 1}}
    assert httpx.post(f"{url}/v1/jobs", json=invalid, headers=auth).status_code == 422
    assert httpx.get(f"{url}/v1/jobs", headers={"authorization": f"Bearer {SECRET}"}).status_code == 401


def _check_access(lines: list[dict[str, Any]], org_id: str) -> None:
    """Check that there is one access log line for each request."""
    access = [line for line in lines if line["logger"] == "duly.http.access"]
    assert len({line["request_id"] for line in access}) == len(access)
    requests = [(line["method"], line["route"], line["status"]) for line in access]
    assert requests.count(("POST", "/v1/jobs", 202)) == len(JOB_TYPES)
    assert requests[-5:] == [
        ("GET", "/v1/jobs/{job_id}", 422),
        ("GET", "/v1/jobs", 200),
        ("GET", "(no route)", 404),
        ("POST", "/v1/jobs", 422),
        ("GET", "/v1/jobs", 401),
    ]
    assert {line.get("org_id") for line in access} == {org_id, None}
    assert all(line["duration_ms"] > 0 for line in access)
    assert not [line for line in lines if line["logger"] == "uvicorn.access"]


async def _check_job_logs(duly: Run, org_id: str, jobs: dict[str, str]) -> None:
    """Check that `duly jobs logs` prints the log lines of the jobs."""
    for job_type, job_id in jobs.items():
        follow = ["--follow"] if job_type == "logging.loop" else []
        result = await duly("jobs", "logs", job_id, "--org", org_id, "--json", *follow)
        lines = [json.loads(line) for line in result.out.splitlines()]
        assert SECRET not in result.out
        assert (lines[0]["message"], lines[0]["fields"]) == ("stored, api_key: [redacted]", {"processed": 1})
        assert [line["level"] for line in lines] == [
            "info",
            *(["error"] if job_type == "logging.failing" else []),
        ]
    text = await duly("jobs", "logs", jobs["logging.failing"], "--org", org_id, "--attempt", 1)
    first, second, third = text.out.splitlines()
    assert first.endswith("attempt 1 info     stored, api_key: [redacted] processed=1")
    assert (second.split()[-2:], third.split()[0]) == (["no", "number"], "ValueError:")
    unknown = await duly("jobs", "logs", uuid.uuid4(), "--org", org_id)
    assert (unknown.code, "no job" in unknown.err) == (3, True)
