"""The resources of documents: documents, versions, uploads, folders, grants, extractions and passages."""

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
    node_id: UUID | None = Field(description="The folder; null is the root.")
    name: str
    version: int
    sha256: str
    size: int
    media_type: str
    status: DocumentStatus = Field(description="`needs_ocr`: some pages have an image but no text.")
    extraction_id: UUID | None = Field(description="The extraction that its text is from, or the last one.")
    page_count: int | None
    chunk_count: int | None
    language: str | None
    doc_type: str | None
    doc_type_confidence: float | None
    doc_type_confirmed: bool = Field(description="Whether a person confirmed the type.")
    metadata: dict[str, Any]
    created_by: str
    created_at: datetime
    updated_at: datetime


class Version(BaseModel):
    """A version of a document: one file."""

    version: int
    sha256: str
    size: int
    media_type: str
    file_name: str
    created_by: str
    created_at: datetime


class OpenUpload(BaseModel):
    """An upload that was started and is not finished."""

    upload_id: UUID
    sha256: str = Field(description="Of the whole file; start an upload with it again to resume.")
    size: int
    part_size: int
    received: int = Field(description="The number of parts received.")
    created_at: datetime = Field(description="When the upload was started or resumed.")


class Folder(BaseModel):
    """A folder."""

    node_id: UUID
    parent_id: UUID | None = Field(description="Null is the root, or a folder that is hidden from you.")
    name: str
    path: str = Field(
        description="The names from the root down, with slashes; `…` is a folder that is hidden from you."
    )
    created_by: str
    created_at: datetime


class Grant(BaseModel):
    """The access of a principal to a folder, and to the folders below that have no grants of their own."""

    principal: str = Field(description="As in `user:u1` or `api_key:k1`.", max_length=300)
    level: Level


class Extraction(BaseModel):
    """The extraction of a version: requested, running or ended."""

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
    """A passage of a document in the search index."""

    index: int
    page: int | None
    type: str | None
    language: str | None
    text: str
    spans: list[Span] = Field(description="The elements of the passage, and their boxes on the page.")
