"""`duly doctor`, and the policies that `duly worker` refuses."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import psycopg
import pytest

from tests.cli.conftest import Run, Service

Start = Callable[..., AbstractContextManager[Service]]
OVERLONG = """
from datetime import timedelta
from duly import Duly

app = Duly()

@app.job("docs.extract", timeout=timedelta(hours=7))
async def extract() -> None: ...
"""
BOTH_VALUES = ("timeout of docs.extract = 7:00:00", "running_stale_after of docs.extract = 6:00:00")


async def test_a_healthy_installation_exits_with_zero(duly: Run) -> None:
    result = await duly("doctor")
    assert (result.code, result.err) == (0, ""), result
    for part in ("connection", "isolation", "5 job types, as the code declares them"):
        assert part in result.out
    report = (await duly("doctor", "--json")).document
    assert report["ok"] is True
    assert {line["check"]: line["verdict"] for line in report["checks"]}["schema"] == "ok"
    assert set(report["checks"][0]) == {"check", "verdict", "seen", "fix"}


async def test_a_failed_check_exits_with_one_and_names_the_fix(duly: Run, sql: psycopg.Connection) -> None:
    sql.execute("drop policy tenant_isolation on duly.ledger")
    result = await duly("doctor")
    assert (result.code, result.err) == (1, "")
    [line] = [line for line in result.out.splitlines() if line.startswith("isolation")]
    assert "fail" in line
    assert "create policy tenant_isolation on duly.ledger to duly_tenant" in line
    assert result.out.splitlines()[-1].startswith("1 failed")
    report = await duly("doctor", "--json")
    assert (report.code, report.document["ok"]) == (1, False)


async def test_an_unreachable_database_is_reported_without_a_traceback(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    result = await duly("doctor")
    assert (result.code, result.err) == (1, "")
    assert [line.split()[0] for line in result.out.splitlines() if " fail " in line] == ["connection"]
    assert "Traceback" not in result.out


async def test_without_an_application_the_checks_of_the_code_are_skipped(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DULY_APP")
    result = await duly("doctor")
    assert result.code == 0
    assert "to check the code, use --app" in result.out


@pytest.fixture
def overlong(tmp_path: Path) -> Path:
    (tmp_path / "overlong.py").write_text(OVERLONG)
    return tmp_path


async def test_a_contradictory_policy_fails_the_check(
    duly: Run, overlong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(overlong)
    report = await duly("doctor", "--app", "overlong:app", "--json")
    [line] = [line for line in report.document["checks"] if line["verdict"] == "fail"]
    assert (report.code, line["check"]) == (1, "invariants")
    assert all(part in line["seen"] for part in BOTH_VALUES)


def test_a_worker_with_a_timeout_beyond_the_stale_horizon_refuses_to_start(
    service: Start, overlong: Path
) -> None:
    with service("--app", "overlong:app", PYTHONPATH=str(overlong)) as worker:
        out, error = worker.process.communicate(timeout=60)
        assert (worker.process.returncode, out) == (2, "")
    assert error.startswith("error: timeout: ")
    assert all(part in error for part in BOTH_VALUES)
    assert error.count("\n") == 1
    assert "Traceback" not in error
