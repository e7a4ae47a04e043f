"""The program in this process, with an application that does not include documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import duly, environment

__all__ = ["duly", "environment"]


@pytest.fixture(autouse=True)
def _here(org: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DULY_ORG", str(org))
    monkeypatch.setenv("DULY_BLOBS_URL", str(tmp_path / "blobs"))
