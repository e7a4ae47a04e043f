"""The files of documents: they come in, at once or as a new version, and go out."""

from collections.abc import AsyncIterator
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from starlette.responses import Response, StreamingResponse

from duly.apps.documents.errors import UnknownFile
from duly.apps.documents.http.bodies import BODY_OF_BYTES, BODY_OF_FORM, pieces, received
from duly.apps.documents.http.models import (
    DocumentFiled,
    ElementsShown,
    Reading,
    VersionsShown,
    engine_of,
    visitor,
)
from duly.apps.documents.library.filing import FilingResult
from duly.apps.documents.service import Documents
from duly.blobs import BlobNotFound
from duly.core.principal import Scope
from duly.features.job_results.routes import attachment
from duly.features.pagination import decode_cursor, encode_cursor
from duly.http import sse as streams
from duly.http.params import MAX_INT32, After, PageSize
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_FILED: dict[int | str, dict[str, Any]] = {
    200: {"model": DocumentFiled, "description": "You had it already."}
}
Which = Annotated[int | None, Query(ge=1, le=MAX_INT32, description="Else the current one.")]
FileName = Annotated[
    str | None, Query(min_length=1, max_length=500, description="Else that of the document.")
]


def routes(service: Service) -> APIRouter:
    """In and out."""
    api = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents = service.documents
    refusals = problem_responses(404, 409, 413, 415)

    @api.post(
        "",
        status_code=201,
        response_model=DocumentFiled,
        responses={**refusals, **_FILED},
        openapi_extra=BODY_OF_FORM,
    )
    async def add(request: Request, who: writes) -> Response:
        """Keep a file as a document, or as a new version of one, and have it read.

        A content that you can see already is not kept twice. Large files come in parts: see `uploads`.
        """
        async with received(request) as form:
            filed = await documents.add(
                visitor(who),
                form.name,
                form.pieces,
                node_id=form.said.node_id,
                metadata=form.said.metadata,
                document_id=form.said.document_id,
                engine=engine_of(form.said.engine),
            )
        return await answer(documents, who, filed)

    @api.put(
        "/{document_id}/content",
        status_code=201,
        response_model=DocumentFiled,
        responses={**refusals, **_FILED},
        openapi_extra=BODY_OF_BYTES,
    )
    async def add_version(
        document_id: UUID, request: Request, who: writes, name: FileName = None, engine: Reading = "fast"
    ) -> Response:
        """Keep the body as a new version of the document, and have it read."""
        asker = visitor(who)
        named = name or (await documents.get(asker, document_id)).name
        filed = await documents.add(
            asker, named, pieces(request), document_id=document_id, engine=engine_of(engine)
        )
        return await answer(documents, who, filed)

    @api.get("/{document_id}/versions", response_model=VersionsShown, responses=problem_responses(404))
    async def versions(document_id: UUID, who: reads, limit: PageSize = 50, after: After = None) -> Response:
        """The files that it has been, the newest first."""
        before = decode_cursor(after, int)
        found = await documents.versions(visitor(who), document_id, before=before, limit=limit)
        following = encode_cursor(found[-1].version) if found and found[-1].version > 1 else None
        return json_response(VersionsShown(versions=[*found], after=following))

    @api.get(
        "/{document_id}/content",
        response_class=Response,
        responses={**problem_responses(404), 200: {"description": "Its bytes.", "content": {"*/*": {}}}},
    )
    async def content(document_id: UUID, who: reads, version: Which = None) -> Response:
        """The file of a version, verified while it is read."""
        found, chunks = await documents.content(visitor(who), document_id, version)
        return StreamingResponse(
            await _begun(chunks),
            headers=attachment(found.file_name, found.media_type, found.size, found.sha256),
        )

    @api.get("/{document_id}/elements", response_model=ElementsShown, responses=problem_responses(404))
    async def elements(document_id: UUID, who: reads) -> Response:
        """What was read out of it, page by page: headings, paragraphs, tables, and where they are."""
        extraction_id, pages = await documents.elements(visitor(who), document_id)
        ids = f'{{"document_id":"{document_id}","extraction_id":"{extraction_id}","pages":'
        return Response(ids.encode() + pages + b"}", media_type="application/json")

    return api


async def answer(documents: Documents, who: Requester, filed: FilingResult) -> Response:
    """What became of a file that came in."""
    asker = visitor(who)
    document = await documents.get(asker, filed.document_id)
    begun = await documents.extractions(asker, filed.document_id)
    under_way = [one.job_id for one in begun if one.status in ("queued", "running")]
    job_id = next(iter(under_way), None)
    shown = DocumentFiled(document=document, version=filed.version, created=filed.created, job_id=job_id)
    location = who.link(f"/v1/documents/{filed.document_id}")
    return json_response(shown, 201 if filed.changed else 200, {"location": location})


async def _begun(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The first bytes are read now: what is no longer kept must be said before the answer begins."""
    try:
        return streams.prepend(await anext(chunks, b""), chunks)
    except BlobNotFound:
        raise UnknownFile(
            "no such version", field="version", fix="see the versions of the document"
        ) from None
