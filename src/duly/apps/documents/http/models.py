"""Documents and folders as they are asked for and as they are shown."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from duly.apps.documents.elements import Engine, PageElements
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.service import BYTES_MAX
from duly.apps.documents.models import (
    Document,
    Extraction,
    Folder,
    Grant,
    IndexedPassage,
    OpenUpload,
    Version,
)
from duly.http.params import NUMERIC, Reason, StrictModel
from duly.http.requester import Requester
from duly.http.responses import ResponseModel

Name = Annotated[str, Field(min_length=1, max_length=500)]
Metadata = Annotated[dict[str, Any], Field(description="Facts about it: a small object, and nothing secret.")]
Reading = Annotated[
    Literal["fast", "hires", "none"],
    Field(description="Who reads it; only engines of the installation itself, or nobody."),
]

DocType = Annotated[
    str,
    Field(
        pattern="^[a-z][a-z0-9_]{1,39}$",
        description="One that Duly knows, as `invoice`, or one of the org's own.",
        examples=["invoice"],
    ),
]


def visitor(who: Requester) -> DocumentPrincipal:
    """Whoever sent a request, as documents know them."""
    return DocumentPrincipal(who.org_id, who.actor)


def engine_of(reading: Reading) -> Engine | None:
    """The engine that was asked for, if any."""
    return None if reading == "none" else reading


class Change(StrictModel):
    """What is to be different; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing is to be different")
        return self


class Placed(StrictModel):
    """Where a file that comes in goes, and who reads it."""

    node_id: UUID | None = Field(default=None, description="The folder; null is the root.")
    metadata: Metadata = Field(default={})
    document_id: UUID | None = Field(
        default=None, description="It is a new version of this document, which stays where it is."
    )
    engine: Reading = "fast"

    @model_validator(mode="after")
    def _version_stays(self) -> Self:
        if self.document_id is not None and (self.node_id is not None or self.metadata):
            raise ValueError(
                "a new version stays where it is, with its metadata: change the document instead"
            )
        return self


class UploadFields(Placed):
    """What is said of a file that comes with it."""

    name: Name | None = Field(default=None, description="Else that of the file.")


class DocumentFiled(BaseModel):
    """Where a file is now."""

    document: Document
    version: int
    created: bool = Field(description="Whether it is a new document.")
    job_id: UUID | None = Field(description="The job that reads it, if it has to be read.")


class DocumentsShown(ResponseModel):
    """Some documents, the newest first; `after` asks for those that follow, and is null at the end."""

    documents: list[Document]
    after: str | None


class DocumentChange(Change):
    """What is to be different about a document; what is left out stays."""

    name: Name | None = None
    node_id: UUID | None = Field(default=None, description="Another folder; null is the root.")
    metadata: Metadata | None = Field(default=None, description="In place of those that it has.")

    @model_validator(mode="after")
    def _is_not_nothing(self) -> Self:
        for field in ("name", "metadata"):
            if field in self.model_fields_set and getattr(self, field) is None:
                raise ValueError(f"{field} cannot be null; leave it out, or say another")
        return self


class VersionsShown(BaseModel):
    """Files that a document has been, the newest first; `after` asks for those that follow, if any."""

    versions: list[Version]
    after: str | None


class ExtractionRequest(StrictModel):
    """How a document is to be read."""

    engine: Engine = "fast"
    consent: bool = Field(
        default=False,
        strict=True,
        description="You agree that the file is sent elsewhere, where it has to be.",
    )


class ExtractionsShown(BaseModel):
    """What was, and is being, read out of a document, the newest first; `after` asks for more, if any."""

    extractions: list[Extraction]
    after: str | None


class ElementsShown(BaseModel):
    """What was read out of a document, page by page."""

    document_id: UUID
    extraction_id: UUID
    pages: list[PageElements]


class NewUpload(StrictModel):
    """A file that will come in parts."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Of the whole file.")
    size: Annotated[int, Field(ge=1, le=BYTES_MAX), NUMERIC]


class UploadShown(ResponseModel):
    """A file that is on its way."""

    upload_id: UUID | None = Field(description="Null if you have that file already: nothing is to be sent.")
    document_id: UUID | None = Field(description="The document that is this file, if you have it already.")
    size: int
    part_size: int = Field(description="The bytes of every part but the last.")
    parts: int
    received: list[int] = Field(description="The parts that are here, from 1.")
    missing: list[int] = Field(description="The parts that are still to be sent.")


class UploadsShown(BaseModel):
    """Files that you have begun to send."""

    uploads: list[OpenUpload]


class UploadFinish(Placed):
    """What the file is called, and where it goes."""

    name: Name


class NewFolder(StrictModel):
    """A folder to be made."""

    name: Name
    parent_id: UUID | None = Field(default=None, description="The folder that it lies in; null is the root.")


class FolderChange(Change):
    """What is to be different about a folder; what is left out stays."""

    name: Name | None = None
    parent_id: UUID | None = Field(default=None, description="Another place; null is the root.")


class FoldersShown(BaseModel):
    """The folders that are open to you, by their paths."""

    folders: list[Folder]


class GrantGiven(Grant):
    """What somebody may do in a folder, and in those below that say nothing of their own."""

    model_config = ConfigDict(extra="forbid")

    principal: str = Field(
        pattern=r"^(user|api_key):[^\x00-\x1f]+$", max_length=300, examples=["user:u1", "api_key:k1"]
    )


class GrantsGiven(StrictModel):
    """Whom a folder is for, all of them; an empty list lets it follow the folder that it lies in."""

    grants: list[GrantGiven] = Field(max_length=200)
    reason: Reason | None = None


class GrantsShown(BaseModel):
    """Whom a folder is for; nobody named means that it follows the folder that it lies in."""

    grants: list[Grant]


class PassagesShown(BaseModel):
    """Passages of a document in their order."""

    passages: list[IndexedPassage]
    next: int | None
