"""Opens a file with the engine that was asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from duly.apps.documents.elements import Engine
from duly.apps.documents.engines.file_reader import Reader
from duly.apps.documents.engines.limits import ReaderLimits
from duly.apps.documents.engines.unstructured import RemoteReader, Unstructured
from duly.core.errors import ConfigurationError


@asynccontextmanager
async def open_file(
    path: Path,
    name: str,
    engine: Engine,
    limits: ReaderLimits | None = None,
    *,
    remote: Unstructured | None = None,
) -> AsyncIterator[Reader]:
    """Open a file of this machine; its process ends with the block, however that ends.

    `name` is what its owner calls it: a hint for kinds of text, never a path. `remote` reads for the engines
    `unstructured_*`. Raises `UnreadableFile` for all that is the file's fault.
    """
    reader = _reader(path, name, engine, limits or ReaderLimits(), remote)
    try:
        await reader.open()
        yield reader
    finally:
        await reader.close()


def _reader(
    path: Path, name: str, engine: Engine, limits: ReaderLimits, remote: Unstructured | None
) -> Reader:
    if engine in ("fast", "hires"):
        return Reader(path, name, engine, limits)
    if remote is None:
        raise ConfigurationError(
            "no remote service reads here", field="engine", fix="name one, or use `hires`"
        )
    return RemoteReader(path, name, engine, limits, remote)
