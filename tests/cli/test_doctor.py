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
    sql.execute("drop policy tenant_isolation on duly.key_ledger")
    result = await duly("doctor")
    assert (result.code, result.err) == (1, "")
    [line] = [line for line in result.out.splitlines() if line.startswith("isolation")]
    assert "fail" in line
    assert "create policy tenant_isolation on duly.key_ledger to duly_tenant" in line
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


async def test_capacity_names_the_source_of_every_figure(duly: Run) -> None:
    result = await duly("doctor", "--capacity", "--jobs-per-day", "100k", "--cores", 4, "--disk-gib", 500)
    assert (result.code, result.err) == (0, ""), result
    lines = {line.split("  ")[0]: line for line in result.out.splitlines()}
    for figure, source in (
        ("jobs per day", "given"),
        ("jobs last day", "measured"),
        ("peak", "assumed"),
        ("worker cpu us per job", "reference"),
        ("server cores needed", "computed"),
    ):
        assert f" {source} " in lines[figure], lines[figure]
    assert "100,000 jobs/day" in lines["jobs per day"]
    assert {"records", "events", "results", "ledger", "queues", "other"} <= lines.keys()
    assert result.out.splitlines()[-1].startswith("the machine suffices: up to ")


async def test_capacity_as_json_is_of_plain_numbers(duly: Run) -> None:
    command = ("doctor", "--capacity", "--jobs-per-day", "2.5M", "--peak", 3, "--cores", 2, "--disk-gib", 1e6)
    report = (await duly(*command, "--json")).document
    assert set(report) == {"fits", "limit", "figures", "disk"}
    assert set(report["figures"]["peak"]) == {"value", "unit", "source", "note"}
    assert report["figures"]["jobs_per_day"]["value"] == 2_500_000
    assert report["figures"]["jobs_per_second"]["value"] == 2_500_000 * 3 / 86_400
    records = report["disk"][0]
    assert (records["group"], records["retention_days"]) == ("records", 431)
    assert set(records["per_job"]) == {"all", "indexes"}


async def test_a_machine_that_does_not_suffice_exits_with_one(duly: Run) -> None:
    result = await duly("doctor", "--capacity", "--jobs-per-day", "1G", "--cores", 1, "--disk-gib", 10)
    assert result.code == 1
    assert result.out.splitlines()[-1].startswith("the disk does not suffice: it can take ")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (
            ("--capacity", "--jobs-per-day", "many"),
            2,
            "--jobs-per-day': 'many' is not a number: write 2500000 or",
        ),
        (("--capacity", "--jobs-per-day", "0"), 4, "jobs_per_day: 0 is out of range (use 1 to"),
        (("--capacity", "--peak", "0.5"), 4, "peak: 0.5 is out of range (use 1 to 1,440 times"),
        (("--cores", "4"), 2, "--cores: use it with --capacity"),
    ],
)
async def test_an_invalid_plan_names_the_option_and_the_fix(
    duly: Run, words: tuple[str, ...], code: int, error: str
) -> None:
    result = await duly("doctor", *words)
    assert (result.code, result.out) == (code, "")
    assert error in result.err


async def test_capacity_of_an_unreachable_database_exits_with_its_code(
    duly: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    result = await duly("doctor", "--capacity")
    assert (result.code, result.out) == (5, "")
    assert "Traceback" not in result.err
