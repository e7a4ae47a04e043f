"""Parameters and request bodies that several routes of documents share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import ConfigDict, Field, model_validator

from duly.apps.documents.elements import Engine
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.http.params import StrictModel
from duly.http.requester import Requester

Name = Annotated[str, Field(min_length=1, max_length=500)]
Metadata = Annotated[dict[str, Any], Field(description="A small JSON object without secrets.")]
LocalEngine = Annotated[
    Literal["fast", "hires", "none"],
    Field(description="The engine that extracts the text, within the installation; or none."),
]
DocType = Annotated[
    str,
    Field(
        pattern="^[a-z][a-z0-9_]{1,39}$",
        description="A built-in type such as `invoice`, or one of the org's own.",
        examples=["invoice"],
    ),
]


def document_principal(requester: Requester) -> DocumentPrincipal:
    """Return the principal of a request."""
    return DocumentPrincipal(requester.org_id, requester.actor)


def engine_of(engine: LocalEngine) -> Engine | None:
    """Return the engine of a request, if any."""
    return None if engine == "none" else engine


class PartialUpdate(StrictModel):
    """The changed fields of a resource; the others stay as they are."""

    model_config = ConfigDict(json_schema_extra={"minProperties": 1})

    @model_validator(mode="after")
    def _check_not_empty(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("nothing to change: pass at least one field")
        return self


class NewFile(StrictModel):
    """The folder, metadata and extraction of a file that is uploaded."""

    node_id: UUID | None = Field(default=None, description="The folder; null is the root.")
    metadata: Metadata = Field(default={})
    document_id: UUID | None = Field(
        default=None,
        description="Add the file as a new version of this document, which keeps its folder and metadata.",
    )
    engine: LocalEngine = "fast"

    @model_validator(mode="after")
    def _check_version(self) -> Self:
        if self.document_id is not None and (self.node_id is not None or self.metadata):
            raise ValueError(
                "a new version keeps the folder and metadata of its document: change the document instead"
            )
        return self


class UploadFields(NewFile):
    """The fields of a form with a file."""

    name: Name | None = Field(default=None, description="Defaults to the name of the file.")
