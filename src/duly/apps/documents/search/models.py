"""What a search asks and answers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Filters(_Value):
    """Which passages are asked for. What is none was not asked about."""

    documents: tuple[UUID, ...] | None = None
    nodes: tuple[UUID, ...] | None = None
    """Folders, with all that lies below them."""
    doc_types: tuple[str, ...] | None = None
    languages: tuple[str, ...] | None = None
    element_types: tuple[str, ...] | None = None
    page_from: int | None = None
    page_to: int | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    """Before this moment."""
    metadata: dict[str, Any] | None = None
    """What the document's metadata must say, among other things."""


@dataclass(frozen=True, slots=True)
class FragmentPart:
    """A stretch of text, and whether it is what was looked for. It is text, never markup."""

    text: str
    hit: bool = False


class Hit(_Value):
    """A passage that was found; of a document without passages its name."""

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
    """The places worth showing."""


class SearchResult(_Value):
    """A page of what was found, best first."""

    hits: tuple[Hit, ...] = ()
    total: int = 0
    """How many there are; at least so many, if not `exact`."""
    exact: bool = True
    more: bool = False
    """Whether a further page follows."""
    corrected: dict[str, tuple[str, ...]] = {}
    """Words that nothing has, and those that were looked for in their place."""
