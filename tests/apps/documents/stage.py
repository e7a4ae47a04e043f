"""Principals and files for the tests of documents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from duly import Actor, Duly
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.filing import FilingResult


def visitor(org: UUID, name: str = "u1") -> DocumentPrincipal:
    return DocumentPrincipal(org, Actor.user(name))


async def pieces(data: bytes, size: int = 65_536) -> AsyncIterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


async def add(
    app: Duly, who: DocumentPrincipal, data: bytes | str, name: str = "brief.txt", **how: object
) -> FilingResult:
    """A document that nobody reads, unless the test says so."""
    content = data.encode() if isinstance(data, str) else data
    return await app.documents.add(who, name, pieces(content), **{"engine": None, **how})  # type: ignore[arg-type]
