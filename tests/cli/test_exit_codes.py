"""Every error is one line, with the documented exit code."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from duly import app_resources as resources
from duly.cli import options
from duly.cli.exit_codes import MEANINGS, exit_code
from duly.core import errors
from duly.embedded.directories import EmbeddedDatabaseError
from tests.cli.conftest import Run

CODES = {
    "DulyError": 4,
    "LeaseLost": 70,
    "JobEnded": 1,
    "WaitTimeout": 4,
    "ConfigurationError": 2,
    "NotFound": 3,
    "ContractError": 4,
    "Conflict": 4,
    "LimitExceeded": 4,
    "StoreError": 5,
}


def _tree(error_class: type[errors.DulyError]) -> Iterator[type[errors.DulyError]]:
    yield error_class
    for subclass in error_class.__subclasses__():
        yield from _tree(subclass)


def test_every_error_class_has_its_documented_exit_code() -> None:
    for error_class in _tree(errors.DulyError):
        base_name = next(base.__name__ for base in error_class.__mro__ if base.__name__ in CODES)
        assert exit_code(error_class("no")) == CODES[base_name], error_class
    assert sorted(MEANINGS) == [0, 1, 2, 3, 4, 5, 70]


async def test_only_an_internal_error_prints_a_traceback(duly: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_internal_error(*_: object) -> None:
        raise ZeroDivisionError("oh")

    load = options.load_app
    monkeypatch.setattr(options, "load_app", raise_internal_error)
    result = await duly("migrate")
    assert (result.code, result.out) == (70, "")
    assert result.err.startswith("Traceback")

    def raise_embedded_error(*_: object) -> None:
        raise EmbeddedDatabaseError("PostgreSQL is not here:\nset DULY_PG_BINDIR")

    monkeypatch.setattr(options, "load_app", load)
    monkeypatch.delenv("DULY_DATABASE_URL")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    monkeypatch.delenv("DULY_APP", raising=False)
    monkeypatch.setattr(resources, "open_server", raise_embedded_error)
    result = await duly("migrate")
    assert result.code == 5
    assert result.err.startswith("error: PostgreSQL is not here: set DULY_PG_BINDIR (")
    assert result.err.count("\n") == 1


async def test_every_failure_is_one_line_with_its_exit_code(
    duly: Run, org: uuid.UUID, tmp_path: Path
) -> None:
    unknown, reason = uuid.uuid4(), ("--reason", "x")
    ended = (await duly("enqueue", "shop.sell", "--org", org, "--json")).document["job_id"]
    await duly("jobs", "cancel", ended, "--org", org, *reason)
    queued = (await duly("enqueue", "shop.sell", "--org", org, "--key", "other", "--json")).document["job_id"]
    exit_codes = {
        ("jobs", "watch", ended, "--org", org): 1,
        ("jobs", "dance"): 2,
        ("jobs", "list"): 2,
        ("jobs", "list", "--org", org, "--limit", "many"): 2,
        ("queues", "pause", "q:default"): 2,
        ("limits", "set", "--org", org, "--max-running", "few", *reason): 2,
        ("enqueue", "shop.greet", "--org", org, "--at", "noon"): 2,
        ("enqueue", "shop.greet", "--org", org, "--payload", f"@{tmp_path}/none"): 4,
        ("jobs", "list", "--org", org, "--app", "nowhere"): 2,
        ("jobs", "list", "--org", org, "--app", "nowhere:app"): 2,
        ("jobs", "list", "--org", org, "--app", "tests.cli.shop:greet"): 2,
        ("jobs", "show", unknown, "--org", org): 3,
        ("jobs", "watch", unknown, "--org", org): 3,
        ("enqueue", "shop.dance", "--org", org): 3,
        ("enqueue", "shop.sell", "--org", unknown): 3,
        ("queues", "pause", "q:none", *reason): 3,
        ("schedules", "run", "none", "--org", org, *reason): 3,
        ("dead-letters", "show", ended, "--org", org): 3,
        ("jobs", "list", "--org", unknown): 3,
        ("dead-letters", "list", "--org", unknown): 3,
        ("dead-letters", "groups", "--org", unknown): 3,
        ("schedules", "list", "--org", unknown): 3,
        ("schedules", "ticks", "none", "--org", org): 3,
        ("jobs", "list", "--org", "acme"): 2,
        ("worker", "--log-level", "loud"): 2,
        ("jobs", "list", "--org", org, "--after", "?"): 4,
        ("jobs", "rerun", queued, "--org", org, *reason): 4,
        ("enqueue", "shop.greet", "--org", org): 4,
        ("enqueue", "shop.greet", "--org", org, "--payload", "{"): 4,
        ("enqueue", "shop.greet", "--org", org, "--payload", "[]"): 4,
        ("enqueue", "shop.greet", "--org", org, "--payload", '{"name": "a", "name": "b"}'): 4,
        ("enqueue", "shop.sell", "--org", org, "--priority", "5000"): 4,
        ("orgs", "create", ""): 4,
    }
    for args, code in exit_codes.items():
        result = await duly(*args)
        assert result.code == code, (args, result)
        if code > 1:
            assert result.out == "", args
            assert result.err.startswith("error: "), args
            assert result.err.count("\n") == 1, result.err


async def test_errors_name_the_options_of_the_command_line(duly: Run, org: uuid.UUID) -> None:
    org_option, reason = ("--org", org), ("--reason", "x")
    types = "user, api_key, system, worker, operator"
    expected_errors = {
        ("enqueue", "shop.sell", *org_option, "--at", "2100-01-01T00:00:00"): (
            2,
            "add a zone, such as Z or +02:00",
        ),
        ("limits", "set", *org_option, "--max-running", "-2", *reason): (4, "or none for no limit"),
        ("limits", "set", *org_option, "--starts-per-second", "-2", *reason): (4, "or none for no limit"),
        ("enqueue", "shop.sell", *org_option, "--actor", "robot:7"): (
            2,
            f"unknown type 'robot'; use one of {types}",
        ),
        ("limits", "pause", *org_option, "--actor", ":7", *reason): (
            2,
            f"unknown type ''; use one of {types}",
        ),
        ("limits", "pause", *org_option, "--reason", ""): (4, "reason: empty (say something)"),
        ("limits", "pause", *org_option, "--reason", "x" * 501): (
            4,
            "reason: longer than 500 characters (shorten it)",
        ),
        ("jobs", "list", "--org", uuid.UUID(int=7)): (3, f"no org {uuid.UUID(int=7)}"),
    }
    for args, (code, part) in expected_errors.items():
        result = await duly(*args)
        assert (result.code, result.out, result.err.count("\n")) == (code, "", 1), result
        assert part in result.err, result


async def test_an_invalid_setting_of_the_application_is_named(
    duly: Run, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_WORKER_LEASE", "abc")
    result = await duly("jobs", "list", "--org", org)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1), result
    assert "DULY_WORKER_LEASE" in result.err
    assert "--app" not in result.err


async def test_a_full_org_and_an_unreachable_database_have_their_exit_codes(
    duly: Run, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    await duly("limits", "set", "--org", org, "--max-waiting", "0", "--reason", "x")
    refused = await duly("enqueue", "shop.sell", "--org", org)
    assert (refused.code, refused.out) == (4, "")
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    monkeypatch.delenv("DULY_APP")
    for args in [("migrate",), ("queues", "list")]:
        unreachable = await duly(*args)
        assert (unreachable.code, unreachable.err.count("\n")) == (5, 1), unreachable
        assert "(check DULY_DATABASE_URL and the server)" in unreachable.err
