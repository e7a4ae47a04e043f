"""A log line has its message, its ids and the fields of the allow-list, and nothing else."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import uuid
from collections.abc import Iterator

import pytest
import structlog

from duly import Actor, context
from duly.jobs.request_context import LogContextFilter, RequestContext, enter_context
from duly.observability import logs
from duly.observability.logs import Logs

ORG, PROJECT, JOB = uuid.uuid4(), uuid.uuid4(), uuid.uuid4()
shop = logging.getLogger("shop")


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Restore the logging configuration after the test."""
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers = []  # the handlers of pytest must not be closed
    monkeypatch.setattr(logs, "_in_use", None)
    yield
    root.handlers, root.level = before
    structlog.reset_defaults()
    logging.setLoggerClass(logging.Logger)


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_an_import_does_not_configure_logging() -> None:
    program = (
        "import logging, structlog, duly, duly.observability.logs\n"
        "assert not logging.getLogger().handlers and not structlog.is_configured()"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.usefixtures("configured")
def test_lines_have_the_ids_of_their_context(capsys: pytest.CaptureFixture[str]) -> None:
    Logs(as_json=True, level="info", filters=(LogContextFilter(),)).configure()
    shop.info("outside")
    fields = {"org_id": ORG, "project_id": PROJECT, "actor": Actor.user("u1")}
    with context(**fields, request_id="req-1", correlation_id="c-1"):
        shop.info("in a request")
        structlog.get_logger("other").warning("by structlog %s", 1, status=200, customer="Ada")
        enter_context(lambda: RequestContext(ORG, None, PROJECT, "req-2", None, None, JOB, "shop.sell", 3))
        shop.info("in a job of %s", "ours", extra={"queue": "q:default", "payload": "Ada"})
        shop.info("about another", extra={"job_id": str(ORG), "org_id": None})
    outside, request, other, job, other_job = _lines(capsys)
    always = {"time", "level", "logger", "message", "pid"}
    assert set(outside) == always
    ids = {"request_id": "req-1", "correlation_id": "c-1", "org_id": str(ORG), "project_id": str(PROJECT)}
    assert {name: request[name] for name in set(request) - always} == ids
    assert {name: other[name] for name in set(other) - always} == {**ids, "status": 200}
    assert (other["logger"], other["level"], other["message"]) == ("other", "warning", "by structlog 1")
    ids_of_request = {**ids, "request_id": "req-2", "correlation_id": "req-2"}
    ids_of_job = {"job_id": str(JOB), "job_type": "shop.sell", "attempt": 3}
    assert {name: job[name] for name in set(job) - always} == {
        **ids_of_request,
        **ids_of_job,
        "queue": "q:default",
    }
    assert {name: other_job[name] for name in set(other_job) - always} == {
        **ids_of_request,
        "job_id": str(ORG),
    }


@pytest.mark.usefixtures("configured")
def test_secrets_are_not_logged(capsys: pytest.CaptureFixture[str]) -> None:
    Logs(as_json=True, level="debug").configure()
    secret = "hunter2"
    shop.debug(
        "password=%s", secret, extra={"secret": secret, "status": object(), "duration_ms": float("nan")}
    )
    try:
        try:
            raise KeyError(f"token={secret}")
        except KeyError as error:
            raise ValueError("no such\ncustomer") from error
    except ValueError:
        shop.exception("it failed")
        structlog.get_logger().error("here too", exc_info=True)
    shop.info("%d rows", secret)  # cannot be formatted
    logging.getLogger("httpcore.http11").debug("headers %s", secret)
    output = capsys.readouterr().err
    assert secret not in output
    first, failed, too, broken = output.splitlines()
    assert json.loads(first)["message"] == "password=[redacted]"
    assert "status" not in json.loads(first)
    exception = json.loads(failed)["exception"].splitlines()
    assert exception[:2] == ["ValueError: no such", "  customer"]
    assert exception[2].startswith("  tests/observability/test_logs.py:")
    assert exception[3] == "caused by KeyError: 'token=[redacted]"
    assert json.loads(too)["exception"].startswith("ValueError: no such")
    assert broken.startswith("log line could not be written (shop, test_logs.py:")


@pytest.mark.usefixtures("configured")
def test_line_breaks_in_messages_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    Logs(as_json=False, level="info").configure()
    shop.info("done\n2026-01-01 [error] \x1b[31mall is lost", extra={"job_id": JOB, "route": "a\nb"})
    try:
        raise ValueError("lost\rall is well\u202e" + "x " * 500)
    except ValueError:
        shop.exception("it failed")
    line, _, exception, *_ = capsys.readouterr().err.split("\n")
    assert exception.startswith("ValueError: lost\\rall is well\ufffdx x ")
    assert len(exception) < 350
    assert "done\\n2026-01-01 [error]" in line
    assert f"job_id={JOB}" in line
    assert "\x1b" not in line
