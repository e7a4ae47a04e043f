"""What an export is asked for, and what it answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

Format = Literal["csv", "jsonl", "pdf"]
CONTENT_TYPES: dict[Format, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "pdf": "application/pdf",
}


class Part(BaseModel):
    """A file that was made, and what is in it."""

    name: str
    sha256: str
    size: int
    documents: Sequence[UUID] = ()
    rows: int = 0
    left_out: int = 0
    warnings: dict[str, int] = {}


class ExportedFile(BaseModel):
    """A file of an export."""

    name: str
    sha256: str
    size: int


class Exported(BaseModel):
    """What an export answers."""

    format: Format
    documents: int
    rows: int = Field(description="Rows of a table, lines of JSON, or pages of paper.")
    left_out: int = Field(
        description="What was asked for, and is not there or not open to the one who asked."
    )
    warnings: dict[str, int] = Field(default={}, description="Stable codes, and how often.")
    artifacts: Sequence[ExportedFile]


class Item(BaseModel):
    """What goes into a file: a document, some of its pages, or a passage that was found."""

    document_id: UUID
    first: int | None = None
    last: int | None = None
    hit: dict[str, Any] | None = None
    """A row of a search, complete but for rights that are looked at again."""


class Batch(BaseModel):
    """What one file is made of."""

    name: str
    items: Sequence[Item]
