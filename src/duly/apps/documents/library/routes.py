"""Routes of documents: list, show, change and delete them; list their versions, download their files."""

from collections.abc import AsyncIterator
from typing import Annotated, Any, Self
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field, model_validator
from starlette.responses import Response, StreamingResponse

from duly.apps.documents.library.service import DocumentPage, unknown_version
from duly.apps.documents.models import Document, DocumentStatus, Version
from duly.apps.documents.request_models import DocType, Metadata, Name, PartialUpdate, document_principal
from duly.blobs import BlobNotFound
from duly.core.principal import Scope
from duly.features.job_results.routes import attachment
from duly.features.pagination import decode_cursor, encode_cursor
from duly.http import sse
from duly.http.params import MAX_INT32, After, PageSize, ReasonParam
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import page_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

VersionNumber = Annotated[int | None, Query(ge=1, le=MAX_INT32, description="Defaults to the current one.")]


class DocumentUpdate(PartialUpdate):
    """The changed fields of a document; the others stay as they are."""

    name: Name | None = None
    node_id: UUID | None = Field(default=None, description="The new folder; null is the root.")
    metadata: Metadata | None = Field(default=None, description="Replaces the current metadata.")

    @model_validator(mode="after")
    def _check_not_null(self) -> Self:
        for field in ("name", "metadata"):
            if field in self.model_fields_set and getattr(self, field) is None:
                raise ValueError(f"{field} cannot be null: leave it out, or pass a value")
        return self


DocumentPageResponse = page_model("documents", Document)
VersionPageResponse = page_model("versions", Version)


def routes(service: Service) -> APIRouter:
    """Return the routes of documents; each requester sees the documents in visible folders."""
    api = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents = service.documents

    @api.get("", response_model=DocumentPageResponse, responses=problem_responses(404))
    async def list_documents(
        requester: reads,
        node_id: UUID | None = None,
        in_root: Annotated[bool, Query(description="Only documents without a folder.")] = False,
        doc_type: DocType | None = None,
        status: DocumentStatus | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> DocumentPage:
        """List the documents of a folder, of the root, or of all folders; newest first."""
        return await documents.list(
            document_principal(requester),
            node_id=node_id,
            in_root=in_root,
            doc_type=doc_type,
            status=status,
            limit=limit,
            after=after,
        )

    @api.get("/{document_id}", response_model=Document, responses=problem_responses(404))
    async def show(document_id: UUID, requester: reads) -> Document:
        """Get a document at its current version."""
        return await documents.get(document_principal(requester), document_id)

    @api.patch("/{document_id}", response_model=Document, responses=problem_responses(404, 413, 415))
    async def change(document_id: UUID, request: DocumentUpdate, requester: writes) -> Document:
        """Rename a document, move it to another folder, or replace its metadata."""
        return await documents.change(
            document_principal(requester),
            document_id,
            name=request.name,
            move_to=request.node_id,
            moves="node_id" in request.model_fields_set,
            metadata=request.metadata,
        )

    @api.delete("/{document_id}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove(document_id: UUID, reason: ReasonParam, requester: writes) -> None:
        """Delete a document and everything derived from it; the audit trail records the deletion."""
        await documents.remove(document_principal(requester), document_id, reason=reason)

    @api.get("/{document_id}/versions", response_model=VersionPageResponse, responses=problem_responses(404))
    async def versions(
        document_id: UUID, requester: reads, limit: PageSize = 50, after: After = None
    ) -> dict[str, Any]:
        """List the versions of a document, newest first."""
        before = decode_cursor(after, int)
        found = await documents.versions(
            document_principal(requester), document_id, before=before, limit=limit
        )
        has_more = bool(found) and found[-1].version > 1
        return {"versions": found, "after": encode_cursor(found[-1].version) if has_more else None}

    @api.get(
        "/{document_id}/content",
        response_class=Response,
        responses={
            **problem_responses(404),
            200: {"description": "The bytes of the file.", "content": {"*/*": {}}},
        },
    )
    async def content(document_id: UUID, requester: reads, version: VersionNumber = None) -> Response:
        """Download the file of a version; its hash is verified while it is sent."""
        found, chunks = await documents.content(document_principal(requester), document_id, version)
        headers = attachment(found.file_name, found.media_type, found.size, found.sha256)
        return StreamingResponse(await _started(chunks), headers=headers)

    return api


async def _started(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Read the first chunk now: a missing file must be reported before the response starts."""
    try:
        return sse.prepend(await anext(chunks, b""), chunks)
    except BlobNotFound:
        raise unknown_version() from None
