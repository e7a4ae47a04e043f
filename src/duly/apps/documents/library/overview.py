"""The overview of an org's documents: reviews, extractions and storage."""

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

RECENT = timedelta(days=7)
"""How long an ended extraction counts as recent."""
_MAX_COUNTED = 2_000


class RecentExtraction(NamedTuple):
    """An extraction, and the name of its document."""

    extraction: Extraction
    name: str


@dataclass(frozen=True, slots=True)
class DocumentOverview:
    """Counts of documents and extractions that the principal may see, and the usage of the whole org."""

    review: int
    """Documents whose type a person has to review."""
    extracting: int
    ended: Mapping[str, int]
    """Extractions of the last seven days by status: done, needs_ocr, failed, blocked, canceled."""
    at_least: bool
    """Whether the counts are lower bounds: at most 2000 rows of each are counted."""
    documents: int
    bytes: int
    quotas: Quotas


async def read_overview(conn: Connection, principal: DocumentPrincipal, quotas: Quotas) -> DocumentOverview:
    """Return the overview for a principal."""
    values = {**await _bounds(conn, principal), "unsure": OTHER}
    counts = await fetch_one(conn, "documents/count_overview", values)
    usage = await fetch_one(conn, "usage/read", {"org_id": principal.org_id, "sha256": ""})
    assert counts is not None
    review, extracting, ended, at_least = counts
    documents, size = usage or (0, 0)
    return DocumentOverview(review, extracting, ended or {}, at_least, documents, size, quotas)


async def recent_extractions(
    conn: Connection, principal: DocumentPrincipal, limit: int
) -> Sequence[RecentExtraction]:
    """Return active extractions, then recent ones that did not succeed, newest first."""
    values = {**await _bounds(conn, principal), "limit": limit}
    rows = await fetch_all(conn, "extractions/list_recent", values)
    return [RecentExtraction(Extraction.model_validate(row), name) for row, name in rows]


async def _bounds(conn: Connection, principal: DocumentPrincipal) -> dict[str, object]:
    return {
        "org_id": principal.org_id,
        "hidden_folders": await hidden_folders(conn, principal),
        "recent": RECENT,
        "max_counted": _MAX_COUNTED,
    }
