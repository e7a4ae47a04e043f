"""Fixtures: one home per test, whose processes and directories are gone after the test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duly.embedded.directories import fallback_dir_for
from tests.embedded.leaseholders import Leaseholder, postmasters, supervisors, wait_until


@pytest.fixture(autouse=True)
def _default_bindir(monkeypatch: pytest.MonkeyPatch) -> None:
    """Find the binaries as an installation does, whatever DULY_PG_BINDIR the test run uses."""
    monkeypatch.delenv("DULY_PG_BINDIR", raising=False)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    wait_until(lambda: not supervisors(home) and not postmasters(home))
    shutil.rmtree(fallback_dir_for(home), ignore_errors=True)


@pytest.fixture
def hold(home: Path) -> Iterator[Callable[[], Leaseholder]]:
    held: list[Leaseholder] = []

    def hold() -> Leaseholder:
        held.append(Leaseholder(home))
        return held[-1]

    yield hold
    for holder in held:
        holder.kill()
