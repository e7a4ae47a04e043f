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


def _tree(kind: type[errors.DulyError]) -> Iterator[type[errors.DulyError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _tree(below)


def test_every_error_has_its_code_and_the_codes_are_as_promised() -> None:
    for kind in _tree(errors.DulyError):
        named = next(above.__name__ for above in kind.__mro__ if above.__name__ in CODES)
        assert exit_code(kind("no")) == CODES[named], kind
    assert sorted(MEANINGS) == [0, 1, 2, 3, 4, 5, 70]


async def test_only_an_internal_error_prints_a_traceback(duly: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def stumble(*_: object) -> None:
        raise ZeroDivisionError("oh")

    load = options.load_app
    monkeypatch.setattr(options, "load_app", stumble)
    done = await duly("migrate")
    assert (done.code, done.out) == (70, "")
    assert done.err.startswith("Traceback")

    def lack(*_: object) -> None:
        raise EmbeddedDatabaseError("PostgreSQL is not here:\nset DULY_PG_BINDIR")

    monkeypatch.setattr(options, "load_app", load)
    monkeypatch.delenv("DULY_DATABASE_URL")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    monkeypatch.delenv("DULY_APP", raising=False)
    monkeypatch.setattr(resources, "open_server", lack)
    done = await duly("migrate")
    assert done.code == 5
    assert done.err.startswith("error: PostgreSQL is not here: set DULY_PG_BINDIR (")
    assert done.err.count("\n") == 1


async def test_every_failure_is_one_line_with_its_exit_code(
    duly: Run, org: uuid.UUID, tmp_path: Path
) -> None:
    nobody, why = uuid.uuid4(), ("--reason", "x")
    ended = (await duly("enqueue", "shop.sell", "--org", org, "--json")).document["job_id"]
    await duly("jobs", "cancel", ended, "--org", org, *why)
    active = (await duly("enqueue", "shop.sell", "--org", org, "--key", "other", "--json")).document["job_id"]
    ways = {
        ("jobs", "watch", ended, "--org", org): 1,
        ("jobs", "dance"): 2,
        ("jobs", "list"): 2,
        ("jobs", "list", "--org", org, "--limit", "many"): 2,
        ("queues", "pause", "q:default"): 2,
        ("limits", "set", "--org", org, "--max-running", "few", *why): 2,
        ("enqueue", "shop.greet", "--org", org, "--at", "noon"): 2,
        ("enqueue", "shop.greet", "--org", org, "--payload", f"@{tmp_path}/none"): 4,
        ("jobs", "list", "--org", org, "--app", "nowhere"): 2,
        ("jobs", "list", "--org", org, "--app", "nowhere:app"): 2,
        ("jobs", "list", "--org", org, "--app", "tests.cli.shop:greet"): 2,
        ("jobs", "show", nobody, "--org", org): 3,
        ("jobs", "watch", nobody, "--org", org): 3,
        ("enqueue", "shop.dance", "--org", org): 3,
        ("enqueue", "shop.sell", "--org", nobody): 3,
        ("queues", "pause", "q:none", *why): 3,
        ("schedules", "run", "none", "--org", org, *why): 3,
        ("dead-letters", "show", ended, "--org", org): 3,
        ("jobs", "list", "--org", nobody): 3,
        ("dead-letters", "list", "--org", nobody): 3,
        ("dead-letters", "groups", "--org", nobody): 3,
        ("schedules", "list", "--org", nobody): 3,
        ("schedules", "ticks", "none", "--org", org): 3,
        ("jobs", "list", "--org", "acme"): 2,
        ("worker", "--log-level", "loud"): 2,
        ("jobs", "list", "--org", org, "--after", "?"): 4,
        ("jobs", "rerun", active, "--org", org, *why): 4,
        ("enqueue", "shop.greet", "--org", org): 4,
        ("enqueue", "shop.greet", "--org", org, "--payload", "{"): 4,
        ("enqueue", "shop.greet", "--org", org, "--payload", "[]"): 4,
        ("enqueue", "shop.greet", "--org", org, "--payload", '{"name": "a", "name": "b"}'): 4,
        ("enqueue", "shop.sell", "--org", org, "--priority", "5000"): 4,
        ("orgs", "create", ""): 4,
    }
    for words, code in ways.items():
        done = await duly(*words)
        assert done.code == code, (words, done)
        if code > 1:
            assert done.out == "", words
            assert done.err.startswith("error: "), words
            assert done.err.count("\n") == 1, done.err


async def test_errors_name_the_options_of_the_command_line(duly: Run, org: uuid.UUID) -> None:
    of, why = ("--org", org), ("--reason", "x")
    types = "user, api_key, system, worker, operator"
    ways = {
        ("enqueue", "shop.sell", *of, "--at", "2100-01-01T00:00:00"): (2, "add a zone, such as Z or +02:00"),
        ("limits", "set", *of, "--max-running", "-2", *why): (4, "or none for no limit"),
        ("limits", "set", *of, "--starts-per-second", "-2", *why): (4, "or none for no limit"),
        ("enqueue", "shop.sell", *of, "--actor", "robot:7"): (2, f"unknown type 'robot'; use one of {types}"),
        ("limits", "pause", *of, "--actor", ":7", *why): (2, f"unknown type ''; use one of {types}"),
        ("limits", "pause", *of, "--reason", ""): (4, "reason: empty (say something)"),
        ("limits", "pause", *of, "--reason", "x" * 501): (
            4,
            "reason: longer than 500 characters (shorten it)",
        ),
        ("jobs", "list", "--org", uuid.UUID(int=7)): (3, f"no org {uuid.UUID(int=7)}"),
    }
    for words, (code, part) in ways.items():
        done = await duly(*words)
        assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
        assert part in done.err, done


async def test_an_invalid_setting_of_the_application_is_named(
    duly: Run, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_WORKER_LEASE", "abc")
    done = await duly("jobs", "list", "--org", org)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1), done
    assert "DULY_WORKER_LEASE" in done.err
    assert "--app" not in done.err


async def test_a_full_org_and_a_missing_database_are_named(
    duly: Run, org: uuid.UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    await duly("limits", "set", "--org", org, "--max-waiting", "0", "--reason", "x")
    full = await duly("enqueue", "shop.sell", "--org", org)
    assert (full.code, full.out) == (4, "")
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://127.0.0.1:1/none")
    monkeypatch.delenv("DULY_DATABASE_DIRECT_URL", raising=False)
    monkeypatch.delenv("DULY_APP")
    for words in [("migrate",), ("queues", "list")]:
        away = await duly(*words)
        assert (away.code, away.err.count("\n")) == (5, 1), away
        assert "(check DULY_DATABASE_URL and the server)" in away.err
