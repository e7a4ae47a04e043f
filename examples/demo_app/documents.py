"""Some documents for one of the customers, where documents are installed; somebody may review their types."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from duly import Actor, Duly

from .people import ORGS

_TEXTS = Path(__file__).parents[1] / "texts"
_SOME = ("angebot-reinigung.txt", "board-minutes.md", "mietvertrag-buero.txt", "payment-reminder.txt")


async def bring(app: Duly) -> None:
    """File them; workers read them, and guess what they are."""
    if "extract_document" not in app.registry:
        return
    from duly.apps.documents.folders.access import DocumentPrincipal

    anna = DocumentPrincipal(ORGS[2].org_id, Actor.user("anna"))
    for name in _SOME:
        await app.documents.add(anna, name, _content(_TEXTS / name))


async def _content(path: Path) -> AsyncIterator[bytes]:
    yield await asyncio.to_thread(path.read_bytes)
