"""How the documents of an org stand: for whoever looks after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from duly.apps.documents.classification.models import OTHER
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.library.quotas import Quotas
from duly.apps.documents.models import Extraction
from duly.apps.documents.schema import Connection, fetch_all, fetch_one

LATE = timedelta(days=7)
"""How far back readings are looked at that have ended."""
_LOOK = 2_000


class Reading(NamedTuple):
    """A reading, and what its document is called."""

    extraction: Extraction
    name: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What is to be done, what is being done, and how much is kept."""

    review: int
    """Documents whose type is too unsure to be believed, until somebody says what they are."""
    reading: int
    ended: Mapping[str, int]
    """Readings of the last seven days by how they ended: done, needs_ocr, failed, blocked, canceled."""
    at_least: bool
    """Whether there may be more: no more than 2000 of each are looked at."""
    documents: int
    bytes: int
    quotas: Quotas


async def standing(conn: Connection, who: DocumentPrincipal, quotas: Quotas) -> Standing:
    """As it is now, as far as they may see it; what is kept is that of the whole org."""
    said = await fetch_one(conn, "documents/standing", {**await _seen(conn, who), "unsure": OTHER})
    kept = await fetch_one(conn, "usage/read", {"org_id": who.org_id, "sha256": ""})
    assert said is not None
    review, reading, ended, at_least = said
    documents, size = kept or (0, 0)
    return Standing(review, reading, ended or {}, at_least, documents, size, quotas)


async def lately(conn: Connection, who: DocumentPrincipal, limit: int) -> Sequence[Reading]:
    """The readings under way, then those of late that did not end well, the newest first."""
    found = await fetch_all(conn, "extractions/list_recent", {**await _seen(conn, who), "limit": limit})
    return [Reading(Extraction.model_validate(row), name) for row, name in found]


async def _seen(conn: Connection, who: DocumentPrincipal) -> dict[str, object]:
    return {
        "org_id": who.org_id,
        "hidden_folders": await hidden_folders(conn, who),
        "late": LATE,
        "look": _LOOK,
    }
