"""A sample file of each format, created once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.apps.documents.engines.read_files import ReadResult, read_files
from tests.apps.documents.engines.sample_files import PICTURES, TEXTS


@pytest.fixture(scope="session")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the sample files."""
    folder = tmp_path_factory.mktemp("samples")
    for name, (_, make) in {**TEXTS, **PICTURES}.items():
        (folder / name).write_bytes(make())
    return folder


@pytest.fixture(scope="session")
def read(samples: Path) -> dict[str, ReadResult]:
    """The result of the engine `fast` for each file."""
    return asyncio.run(read_files(sorted(samples.iterdir())))
