"""Opens a file with the engine that was asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from duly.apps.documents.elements import Engine
from duly.apps.documents.engines.file_reader import Reader
from duly.apps.documents.engines.limits import Limits
from duly.apps.documents.engines.unstructured import RemoteReader, Unstructured
from duly.core.errors import ConfigurationError


@asynccontextmanager
async def open_file(
    path: Path,
    name: str,
    engine: Engine,
    limits: Limits | None = None,
    *,
    remote: Unstructured | None = None,
) -> AsyncIterator[Reader]:
    """Open a file of this machine; its process ends with the block, however that ends.

    `name` is what its owner calls it: a hint for kinds of text, never a path. `remote` reads for the engines
    `unstructured_*`. Raises `Unreadable` for all that is the file's fault.
    """
    reader = _reader(path, name, engine, limits or Limits(), remote)
    try:
        await reader.open()
        yield reader
    finally:
        await reader.close()


def _reader(path: Path, name: str, engine: Engine, limits: Limits, remote: Unstructured | None) -> Reader:
    if engine in ("fast", "hires"):
        return Reader(path, name, engine, limits)
    if remote is None:
        raise ConfigurationError(
            "no remote service reads here", field="engine", fix="name one, or use `hires`"
        )
    return RemoteReader(path, name, engine, limits, remote)
