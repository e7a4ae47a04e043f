"""What a system is run with, and why it is not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from bench.peers.catalogue import chosen
from bench.peers.environments import NotRun, command_of, interpreter


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without programs; return the folder in which pyenv has its versions."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    return tmp_path / "versions"


@pytest.mark.usefixtures("nothing")
def test_a_system_without_an_adapter_is_skipped_with_the_reason() -> None:
    (river,) = [system for system in chosen(["river"], []) if system.key == "river"]
    with pytest.raises(NotRun, match=r"no Go toolchain \(go\); published as source only"):
        command_of(river)


@pytest.mark.usefixtures("nothing")
def test_a_system_runs_with_this_interpreter_unless_it_is_too_old() -> None:
    assert interpreter((3, 11)) == sys.executable
    with pytest.raises(NotRun, match=r"no Python 3\.97 or newer"):
        interpreter((3, 97))


def test_the_nearest_newer_interpreter_is_found(nothing: Path) -> None:
    for minor in (99, 98):
        found = nothing / f"3.{minor}.0" / "bin" / f"python3.{minor}"
        found.parent.mkdir(parents=True)
        found.touch(0o755)
    assert interpreter((3, 97)) == str(found)
