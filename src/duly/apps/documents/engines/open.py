"""Open a file with an extraction engine."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from duly.apps.documents.elements import Engine
from duly.apps.documents.engines.file_reader import FileReader
from duly.apps.documents.engines.limits import ReaderLimits
from duly.apps.documents.engines.unstructured import Unstructured, UnstructuredReader
from duly.core.errors import ConfigurationError


@asynccontextmanager
async def open_file(
    path: Path,
    name: str,
    engine: Engine,
    limits: ReaderLimits | None = None,
    *,
    remote: Unstructured | None = None,
) -> AsyncIterator[FileReader]:
    """Open a local file; the reader process ends with the block.

    `name` is the name the user gave it: a hint for text formats, never a path. The engines `unstructured_*`
    need `remote`. Raise `UnreadableFile` for every defect of the file.
    """
    reader = _create_reader(path, name, engine, limits or ReaderLimits(), remote)
    try:
        await reader.open()
        yield reader
    finally:
        await reader.close()


def _create_reader(
    path: Path, name: str, engine: Engine, limits: ReaderLimits, remote: Unstructured | None
) -> FileReader:
    if engine in ("fast", "hires"):
        return FileReader(path, name, engine, limits)
    if remote is None:
        raise ConfigurationError(
            f"no remote service is configured for the engine {engine}",
            field="engine",
            fix="configure one, or use `hires`",
        )
    return UnstructuredReader(path, name, engine, limits, remote)
