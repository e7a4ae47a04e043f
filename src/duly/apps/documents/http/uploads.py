"""Files that come in parts: whoever is interrupted goes on where they were."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request
from starlette.responses import Response

from duly.apps.documents.http.bodies import BODY_OF_BYTES, pieces
from duly.apps.documents.http.files import answer
from duly.apps.documents.http.models import (
    DocumentFiled,
    NewUpload,
    UploadFinish,
    UploadShown,
    UploadsShown,
    engine_of,
    visitor,
)
from duly.apps.documents.uploads.service import Upload
from duly.core.principal import Scope
from duly.http.params import MAX_INT32
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

UPLOADS = "/v1/documents/uploads"


def routes(service: Service) -> APIRouter:
    """Nobody sees another's."""
    api = APIRouter(prefix=UPLOADS, tags=["documents"], route_class=StrictRoute)
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents, refusals = service.documents, problem_responses(404, 409, 413, 415)

    @api.post(
        "",
        status_code=201,
        response_model=UploadShown,
        responses={
            **problem_responses(413, 415),
            200: {"model": UploadShown, "description": "You have that file already."},
        },
    )
    async def begin_upload(request: NewUpload, who: writes) -> Response:
        """Announce a file by its hash. Announced again, it goes on where it was."""
        begun = await documents.uploads.begin(visitor(who), request.sha256, request.size)
        if begun.upload_id is None:
            return _shown(begun)
        return json_response(
            UploadShown.model_validate(begun), 201, {"location": who.link(f"{UPLOADS}/{begun.upload_id}")}
        )

    @api.get("", response_model=UploadsShown, responses=problem_responses())
    async def list_uploads(who: writes) -> Response:
        """Those that you have begun and not finished, the last one first."""
        return json_response(UploadsShown(uploads=[*await documents.uploads.list(visitor(who))]))

    @api.get("/{upload_id}", response_model=UploadShown, responses=problem_responses(404))
    async def show_upload(upload_id: UUID, who: writes) -> Response:
        """How far it is, and which parts are missing."""
        return _shown(await documents.uploads.get(visitor(who), upload_id))

    @api.put(
        "/{upload_id}/parts/{part}",
        response_model=UploadShown,
        responses=problem_responses(404, 413, 415),
        openapi_extra=BODY_OF_BYTES,
    )
    async def put_part(
        upload_id: UUID, part: Annotated[int, Path(ge=1, le=MAX_INT32)], request: Request, who: writes
    ) -> Response:
        """Keep a part, in any order; sent again, it replaces the one before."""
        return _shown(await documents.uploads.put(visitor(who), upload_id, part, pieces(request)))

    @api.post(
        "/{upload_id}/finish",
        status_code=201,
        response_model=DocumentFiled,
        responses={**refusals, 200: {"model": DocumentFiled, "description": "You had it already."}},
    )
    async def finish_upload(upload_id: UUID, request: UploadFinish, who: writes) -> Response:
        """Join the parts, check them against the hash, and file the document."""
        filed = await documents.uploads.finish(
            visitor(who),
            upload_id,
            request.name,
            node_id=request.node_id,
            metadata=request.metadata,
            document_id=request.document_id,
            engine=engine_of(request.engine),
        )
        return await answer(documents, who, filed)

    @api.delete("/{upload_id}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def abandon_upload(upload_id: UUID, who: writes) -> Response:
        """Give it up; its parts are cleared away."""
        await documents.uploads.abandon(visitor(who), upload_id)
        return Response(status_code=204)

    return api


def _shown(upload: Upload) -> Response:
    return json_response(UploadShown.model_validate(upload))
