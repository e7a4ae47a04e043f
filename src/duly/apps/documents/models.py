"""Documents, versions, folders and extractions as they are shown."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from duly.apps.documents.elements import Engine, Span
from duly.apps.documents.folders.access import Level

DocumentStatus = Literal["stored", "extracting", "extracted", "needs_ocr", "failed", "blocked"]
ExtractionStatus = Literal["queued", "running", "done", "needs_ocr", "failed", "blocked", "canceled"]


class Document(BaseModel):
    """A document of an org, at its current version."""

    document_id: UUID
    node_id: UUID | None = Field(description="The folder it lies in; null is the root.")
    name: str
    version: int
    sha256: str
    size: int
    media_type: str
    status: DocumentStatus = Field(description="`needs_ocr`: some pages have no text of their own.")
    extraction_id: UUID | None = Field(description="The extraction that its text is from, or the last one.")
    page_count: int | None
    chunk_count: int | None
    language: str | None
    doc_type: str | None
    doc_type_confidence: float | None
    doc_type_confirmed: bool = Field(description="Whether somebody said so.")
    metadata: dict[str, Any]
    created_by: str
    created_at: datetime
    updated_at: datetime


class Version(BaseModel):
    """A file that a document has been."""

    version: int
    sha256: str
    size: int
    media_type: str
    file_name: str
    created_by: str
    created_at: datetime


class OpenUpload(BaseModel):
    """A file that somebody has begun to send."""

    upload_id: UUID
    sha256: str = Field(description="Of the whole file: begun with again, it goes on.")
    size: int
    part_size: int
    received: int = Field(description="How many parts are here.")
    created_at: datetime = Field(description="When it was begun, or gone on with.")


class Folder(BaseModel):
    """A folder."""

    node_id: UUID
    parent_id: UUID | None = Field(description="Null is the root, or a folder that is closed to you.")
    name: str
    path: str = Field(
        description="The names from the root down, with slashes; `…` is one that is closed to you."
    )
    created_by: str
    created_at: datetime


class Grant(BaseModel):
    """What somebody may do in a folder, and in those below that say nothing of their own."""

    principal: str = Field(description="As in `user:u1` or `api_key:k1`.", max_length=300)
    level: Level


class Extraction(BaseModel):
    """What was, or is being, read out of a version."""

    extraction_id: UUID
    document_id: UUID
    version: int
    job_id: UUID | None
    engine: Engine
    status: ExtractionStatus
    consent_given_at: datetime | None
    consent_given_by: str | None
    estimated_pages: int | None
    estimated_cost_cents: int | None
    actual_pages: int | None
    actual_cost_cents: int | None
    result_json: dict[str, Any] | None
    warnings: list[str]
    error_code: str | None
    error_message: str | None
    started_at: datetime | None
    finished_at: datetime | None
    created_at: datetime


class IndexedPassage(BaseModel):
    """A passage of a document, as search finds it."""

    index: int
    page: int | None
    type: str | None
    language: str | None
    text: str
    spans: list[Span] = Field(description="The elements that it is made of, and where they are on the page.")
