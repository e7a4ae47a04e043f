"""The plan and the result of an export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

ExportFormat = Literal["csv", "jsonl", "pdf"]
CONTENT_TYPES: dict[ExportFormat, str] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "pdf": "application/pdf",
}


class ExportItem(BaseModel):
    """An item of a file: a document, a range of its pages, or a search hit."""

    document_id: UUID
    first: int | None = None
    last: int | None = None
    hit: dict[str, Any] | None = None
    """The row of a search hit; access to its document is checked again when the file is written."""


class ExportBatch(BaseModel):
    """The items of one file."""

    name: str
    items: Sequence[ExportItem]


class ExportedFile(BaseModel):
    """A file of an export."""

    name: str
    sha256: str
    size: int


class ExportedPart(ExportedFile):
    """A written file with its counts: the partial result of its chunk."""

    documents: Sequence[UUID] = ()
    rows: int = 0
    left_out: int = 0
    warnings: dict[str, int] = {}


class ExportResult(BaseModel):
    """The result of an export."""

    format: ExportFormat
    documents: int
    rows: int = Field(description="The number of rows, JSON lines or PDF pages.")
    left_out: int = Field(description="Requested documents that do not exist, or are hidden from you.")
    warnings: dict[str, int] = Field(default={}, description="Stable codes, and how often each occurred.")
    artifacts: Sequence[ExportedFile]
