"""One file of each kind, made once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.apps.documents.engines.made import PICTURES, TEXTS
from tests.apps.documents.engines.reading import Outcome, outcomes


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with them."""
    folder = tmp_path_factory.mktemp("shelf")
    for name, (_, make) in {**TEXTS, **PICTURES}.items():
        (folder / name).write_bytes(make())
    return folder


@pytest.fixture(scope="session")
def read(shelf: Path) -> dict[str, Outcome]:
    """What `fast` reads of each."""
    return asyncio.run(outcomes(sorted(shelf.iterdir())))
