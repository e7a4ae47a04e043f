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
BOTH = ("timeout of docs.extract = 7:00:00", "running_stale_after of docs.extract = 6:00:00")


async def test_a_healthy_installation_exits_with_zero(duly: Run) -> None:
    done = await duly("doctor")
    assert (done.code, done.err) == (0, ""), done
    for part in ("connection", "isolation", "4 job types, as the code declares them"):
        assert part in done.out
    told = (await duly("doctor", "--json")).document
    assert told["ok"] is True
    assert {line["check"]: line["verdict"] for line in told["checks"]}["schema"] == "ok"
    assert set(told["checks"][0]) == {"check", "verdict", "seen", "fix"}


async def test_a_failed_check_exits_with_one_and_names_the_fix(duly: Run, sql: psycopg.Connection) -> None:
    sql.execute("drop policy tenant_isolation on duly.ledger")
    done = await duly("doctor")
    assert (done.code, done.err) == (1, "")
    [line] = [line for line in done.out.splitlines() if line.startswith("isolation")]
    assert "fail" in line
    assert "create policy tenant_isolation on duly.ledger to duly_tenant" in line
    assert done.out.splitlines()[-1].startswith("1 failed")
    told = await duly("doctor", "--json")
    assert (told.code, told.document["ok"]) == (1, False)


async def test_an_unreachable_database_is_a_line_and_no_traceback(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    done = await duly("doctor")
    assert (done.code, done.err) == (1, "")
    assert [line.split()[0] for line in done.out.splitlines() if " fail " in line] == ["connection"]
    assert "Traceback" not in done.out


async def test_without_an_application_the_checks_of_the_code_are_skipped(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DULY_APP")
    done = await duly("doctor")
    assert done.code == 0
    assert "to check the code, use --app" in done.out


@pytest.fixture
def overlong(tmp_path: Path) -> Path:
    (tmp_path / "overlong.py").write_text(OVERLONG)
    return tmp_path


async def test_a_policy_that_cannot_be_met_fails_the_check(
    duly: Run, overlong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(overlong)
    told = await duly("doctor", "--app", "overlong:app", "--json")
    [line] = [line for line in told.document["checks"] if line["verdict"] == "fail"]
    assert (told.code, line["check"]) == (1, "invariants")
    assert all(part in line["seen"] for part in BOTH)


def test_a_worker_with_a_timeout_beyond_the_horizon_refuses_to_start(service: Start, overlong: Path) -> None:
    with service("--app", "overlong:app", PYTHONPATH=str(overlong)) as till:
        out, said = till.process.communicate(timeout=60)
        assert (till.process.returncode, out) == (2, "")
    assert said.startswith("error: timeout: ")
    assert all(part in said for part in BOTH)
    assert said.count("\n") == 1
    assert "Traceback" not in said
