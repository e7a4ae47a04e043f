"""A home per test; nothing of it outlives the test."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duly.embedded.directories import fallback_dir_for
from tests.embedded.leaseholders import Leaseholder, postmasters, supervisors, wait_until


@pytest.fixture(autouse=True)
def _usual_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """The binaries are found as users find them, whatever the rest of the run uses."""
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
