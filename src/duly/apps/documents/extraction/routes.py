"""Routes of extractions: start and list them, read the elements and passages that they found."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.apps.documents.elements import Engine, PageElements
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.models import Extraction, IndexedPassage
from duly.apps.documents.request_models import document_principal
from duly.core.principal import Scope
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted
from duly.features.pagination import decode_cursor, encode_cursor
from duly.http.params import MAX_INT32, After, PageSize, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import list_model, page_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

Start = Annotated[int, Query(ge=0, le=MAX_INT32, description="The first passage, from 0.")]


class ExtractionRequest(StrictModel):
    """The engine of an extraction, and the consent that a remote engine needs."""

    engine: Engine = "fast"
    consent: bool = Field(
        default=False,
        strict=True,
        description="You agree that the file is sent to an external service, if the engine needs one.",
    )


class DocumentElements(BaseModel):
    """The elements of a document, page by page."""

    document_id: UUID
    extraction_id: UUID
    pages: list[PageElements]


ExtractionPageResponse = page_model("extractions", Extraction)
PassageList = list_model(
    "passages",
    IndexedPassage,
    "Passages",
    next=(int | None, "The `start` of the next page; null on the last one."),
)


def routes(service: Service) -> APIRouter:
    """Return the routes of extractions."""
    api = APIRouter(prefix="/v1/documents/{document_id}", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents = service.documents

    @api.get("/extractions", response_model=ExtractionPageResponse, responses=problem_responses(404))
    async def extractions(
        document_id: UUID, requester: reads, limit: PageSize = 50, after: After = None
    ) -> dict[str, Any]:
        """List the extractions of a document, newest first."""
        before = decode_cursor(after, UUID)
        found = await documents.extractions(
            document_principal(requester), document_id, before=before, limit=limit
        )
        has_more = len(found) == limit
        return {"extractions": found, "after": encode_cursor(found[-1].extraction_id) if has_more else None}

    @api.post(
        "/extractions",
        status_code=202,
        response_model=Accepted,
        responses=problem_responses(404, 413, 415),
    )
    async def extract(document_id: UUID, request: ExtractionRequest, requester: writes) -> Response:
        """Extract the text of the current version again, or with another engine.

        The result replaces the text of the document when all pages are read.
        """
        started = await documents.extract(
            document_principal(requester), document_id, request.engine, consent=request.consent
        )
        return accepted(
            requester, started.job_id, document_subject(document_id), replayed=not started.created
        )

    @api.get("/elements", response_model=DocumentElements, responses=problem_responses(404))
    async def elements(document_id: UUID, requester: reads) -> Response:
        """Get the elements of a document page by page: headings, paragraphs, tables, and their boxes."""
        extraction_id, pages = await documents.elements(document_principal(requester), document_id)
        ids = f'{{"document_id":"{document_id}","extraction_id":"{extraction_id}","pages":'
        return Response(ids.encode() + pages + b"}", media_type="application/json")

    @api.get("/passages", response_model=PassageList, responses=problem_responses(404))
    async def passages(
        document_id: UUID, requester: reads, start: Start = 0, limit: PageSize = 50
    ) -> dict[str, Any]:
        """List the passages of a document that search indexes, in order."""
        found = await documents.passages(document_principal(requester), document_id, start=start, limit=limit)
        return {"passages": found, "next": found[-1].index + 1 if len(found) == limit else None}

    return api
