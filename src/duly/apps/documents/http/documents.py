"""Documents of the org: listed, changed, deleted, read by engines."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from starlette.responses import Response

from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.http.models import (
    DocType,
    DocumentChange,
    DocumentsShown,
    ExtractionRequest,
    ExtractionsShown,
    PassagesShown,
    visitor,
)
from duly.apps.documents.models import Document, DocumentStatus
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.features.pagination import decode_cursor, encode_cursor
from duly.http.params import MAX_INT32, After, PageSize, ReasonParam
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Start = Annotated[int, Query(ge=0, le=MAX_INT32, description="The first passage, from 0.")]


def routes(service: Service) -> APIRouter:
    """Everybody sees what lies in folders that are open to them."""
    api = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents = service.documents

    @api.get("", response_model=DocumentsShown, responses=problem_responses(404))
    async def list_documents(
        who: reads,
        node_id: UUID | None = None,
        in_root: Annotated[bool, Query(description="Only what lies in no folder.")] = False,
        doc_type: DocType | None = None,
        status: DocumentStatus | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> Response:
        """The documents of a folder, of the root, or of everywhere; the newest first."""
        page = await documents.list(
            visitor(who),
            node_id=node_id,
            in_root=in_root,
            doc_type=doc_type,
            status=status,
            limit=limit,
            after=after,
        )
        return json_response(DocumentsShown.model_validate(page))

    @api.get("/{document_id}", response_model=Document, responses=problem_responses(404))
    async def show(document_id: UUID, who: reads) -> Response:
        """One document, at its current version."""
        return json_response(await documents.get(visitor(who), document_id))

    @api.patch("/{document_id}", response_model=Document, responses=problem_responses(404, 413, 415))
    async def change(document_id: UUID, request: DocumentChange, who: writes) -> Response:
        """Another name, another folder or other metadata."""
        changed = await documents.change(
            visitor(who),
            document_id,
            name=request.name,
            move_to=request.node_id,
            moves="node_id" in request.model_fields_set,
            metadata=request.metadata,
        )
        return json_response(changed)

    @api.delete("/{document_id}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove(document_id: UUID, reason: ReasonParam, who: writes) -> Response:
        """Delete it and everything that was made of it; the audit trail keeps that it was."""
        await documents.remove(visitor(who), document_id, reason=reason)
        return Response(status_code=204)

    @api.get("/{document_id}/passages", response_model=PassagesShown, responses=problem_responses(404))
    async def passages(document_id: UUID, who: reads, start: Start = 0, limit: PageSize = 50) -> Response:
        """What search finds of it, in its order; `next` is where those begin that follow, if any."""
        found = await documents.passages(visitor(who), document_id, start=start, limit=limit)
        following = found[-1].index + 1 if len(found) == limit else None
        return json_response(PassagesShown(passages=[*found], next=following))

    @api.get("/{document_id}/extractions", response_model=ExtractionsShown, responses=problem_responses(404))
    async def extractions(
        document_id: UUID, who: reads, limit: PageSize = 50, after: After = None
    ) -> Response:
        """What was, and is being, read out of it; the newest first."""
        before = decode_cursor(after, UUID)
        found = await documents.extractions(visitor(who), document_id, before=before, limit=limit)
        following = encode_cursor(found[-1].extraction_id) if len(found) == limit else None
        return json_response(ExtractionsShown(extractions=[*found], after=following))

    @api.post(
        "/{document_id}/extractions",
        status_code=202,
        response_model=Accepted,
        responses=problem_responses(404, 413, 415),
    )
    async def extract(document_id: UUID, request: ExtractionRequest, who: writes) -> Response:
        """Have the current version read, once more or by another engine.

        What it brings replaces what was read before, at once when all of it is read.
        """
        begun = await documents.extract(visitor(who), document_id, request.engine, consent=request.consent)
        return accepted(who, begun.job_id, document_subject(document_id), replayed=not begun.created)

    return api
