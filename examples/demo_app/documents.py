"""Documents for one of the customers, if documents are installed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from duly import Actor, Duly

from .customers import ORGS

_TEXTS = Path(__file__).parents[1] / "texts"
FILES = ("angebot-reinigung.txt", "board-minutes.md", "mietvertrag-buero.txt", "payment-reminder.txt")


async def add_documents(app: Duly) -> None:
    """Add the documents; workers extract and classify them."""
    if "extract_document" not in app.registry:
        return
    from duly.apps.documents.folders.access import DocumentPrincipal

    anna = DocumentPrincipal(ORGS[2].org_id, Actor.user("anna"))
    for name in FILES:
        await app.documents.add(anna, name, _content(_TEXTS / name))


async def _content(path: Path) -> AsyncIterator[bytes]:
    yield await asyncio.to_thread(path.read_bytes)
