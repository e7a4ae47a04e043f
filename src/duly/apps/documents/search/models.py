"""Filters, hits and results of a search."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class Filters(BaseModel):
    """Restrictions on the passages of a search; None does not restrict."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    documents: tuple[UUID, ...] | None = None
    nodes: tuple[UUID, ...] | None = None
    """Folders, including the folders below them."""
    doc_types: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    element_types: tuple[str, ...] | None = None
    page_from: int | None = None
    page_to: int | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    """Exclusive."""
    metadata: dict[str, Any] | None = None
    """Values that the document's metadata must contain."""


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """A part of a fragment: plain text, never markup; `hit` if it matches the query."""

    text: str
    hit: bool = False


class Hit(BaseModel):
    """A matching passage; of a document without passages its name."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    document_id: UUID
    name: str
    node_id: UUID | None
    doc_type: str | None
    chunk_index: int | None
    page: int | None
    element_type: str | None
    language: str | None
    score: float
    text: str
    fragments: tuple[tuple[FragmentPart, ...], ...] = ()
    """The parts of the text to show."""


class SearchResult(BaseModel):
    """A page of hits, best first."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hits: tuple[Hit, ...] = ()
    total: int = 0
    """The number of hits; a lower bound if not `exact`."""
    exact: bool = True
    more: bool = False
    """Whether there is a next page."""
    corrected: dict[str, tuple[str, ...]] = {}
    """Words of the query that no passage contains, and the words that replaced them."""
