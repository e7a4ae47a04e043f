"""Routes that receive files: as a form, as the body of a new version, and in resumable parts."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.apps.documents.library.filing import FilingResult
from duly.apps.documents.library.service import MAX_FILE_SIZE
from duly.apps.documents.models import Document, OpenUpload
from duly.apps.documents.request_models import LocalEngine, Name, NewFile, document_principal, engine_of
from duly.apps.documents.service import Documents
from duly.apps.documents.uploads.request_bodies import BODY_OF_BYTES, BODY_OF_FORM, body_chunks, file_form
from duly.apps.documents.uploads.service import Upload
from duly.core.principal import Scope
from duly.http.params import MAX_INT32, NUMERIC, StrictModel
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import ResponseModel, json_response, list_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_DOCUMENTS = "/v1/documents"
UPLOADS = f"{_DOCUMENTS}/uploads"
FileName = Annotated[
    str | None,
    Query(min_length=1, max_length=500, description="Defaults to the name of the document."),
]
PartNumber = Annotated[int, Path(ge=1, le=MAX_INT32)]


class FiledDocument(BaseModel):
    """The document and version that a file was added as."""

    document: Document
    version: int
    created: bool = Field(description="Whether it is a new document.")
    job_id: UUID | None = Field(description="The extraction job, if there is one.")


class NewUpload(StrictModel):
    """A file that will be sent in parts."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="Of the whole file.")
    size: Annotated[int, Field(ge=1, le=MAX_FILE_SIZE), NUMERIC]


class UploadFinish(NewFile):
    """The name of the uploaded file, and its folder."""

    name: Name


class UploadResponse(ResponseModel):
    """The state of an upload."""

    upload_id: UUID | None = Field(
        description="Null if you have that file already and nothing needs to be sent."
    )
    document_id: UUID | None = Field(description="The document with this content, if you have it already.")
    size: int
    part_size: int = Field(description="The size of every part but the last.")
    parts: int
    received: list[int] = Field(description="The received parts, from 1.")
    missing: list[int] = Field(description="The parts that are still to be sent.")


UploadList = list_model("uploads", OpenUpload, "Uploads")
_REFUSALS = problem_responses(404, 409, 413, 415)
_FILED: dict[int | str, dict[str, Any]] = {
    **_REFUSALS,
    200: {"model": FiledDocument, "description": "You had this file already."},
}


def routes(service: Service) -> APIRouter:
    """Return the routes that receive files; an upload is visible to the principal that started it."""
    api = APIRouter(prefix=_DOCUMENTS, tags=["documents"], route_class=StrictRoute)
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    documents, uploads = service.documents, service.documents.uploads

    @api.post(
        "",
        status_code=201,
        response_model=FiledDocument,
        responses=_FILED,
        openapi_extra=BODY_OF_FORM,
    )
    async def add(request: Request, requester: writes) -> Response:
        """Add a file as a document, or as a new version of one, and extract its text.

        A content that you can see already is not stored twice. Send large files in parts: see `uploads`.
        """
        async with file_form(request) as form:
            filed = await documents.add(
                document_principal(requester),
                form.name,
                form.chunks,
                node_id=form.fields.node_id,
                metadata=form.fields.metadata,
                document_id=form.fields.document_id,
                engine=engine_of(form.fields.engine),
            )
        return await _filed(documents, requester, filed)

    @api.put(
        "/{document_id}/content",
        status_code=201,
        response_model=FiledDocument,
        responses=_FILED,
        openapi_extra=BODY_OF_BYTES,
    )
    async def add_version(
        document_id: UUID,
        request: Request,
        requester: writes,
        name: FileName = None,
        engine: LocalEngine = "fast",
    ) -> Response:
        """Add the body as a new version of the document, and extract its text."""
        principal = document_principal(requester)
        name = name or (await documents.get(principal, document_id)).name
        filed = await documents.add(
            principal, name, body_chunks(request), document_id=document_id, engine=engine_of(engine)
        )
        return await _filed(documents, requester, filed)

    @api.post(
        "/uploads",
        status_code=201,
        response_model=UploadResponse,
        responses={
            **problem_responses(413, 415),
            200: {"model": UploadResponse, "description": "You have this file already."},
        },
    )
    async def begin_upload(request: NewUpload, requester: writes) -> Response:
        """Announce a file by its hash. Announcing it again resumes its upload."""
        upload = await uploads.begin(document_principal(requester), request.sha256, request.size)
        response = UploadResponse.model_validate(upload)
        if upload.upload_id is None:
            return json_response(response)
        return json_response(response, 201, {"location": requester.link(f"{UPLOADS}/{upload.upload_id}")})

    @api.get("/uploads", response_model=UploadList, responses=problem_responses())
    async def list_uploads(requester: writes) -> dict[str, Any]:
        """List your open uploads, newest first."""
        return {"uploads": await uploads.list(document_principal(requester))}

    @api.get("/uploads/{upload_id}", response_model=UploadResponse, responses=problem_responses(404))
    async def show_upload(upload_id: UUID, requester: writes) -> Upload:
        """Get the state of an upload, and its missing parts."""
        return await uploads.get(document_principal(requester), upload_id)

    @api.put(
        "/uploads/{upload_id}/parts/{part}",
        response_model=UploadResponse,
        responses=problem_responses(404, 413, 415),
        openapi_extra=BODY_OF_BYTES,
    )
    async def put_part(upload_id: UUID, part: PartNumber, request: Request, requester: writes) -> Upload:
        """Send a part, in any order; sent again, it replaces the one before."""
        return await uploads.put(document_principal(requester), upload_id, part, body_chunks(request))

    @api.post("/uploads/{upload_id}/finish", status_code=201, response_model=FiledDocument, responses=_FILED)
    async def finish_upload(upload_id: UUID, request: UploadFinish, requester: writes) -> Response:
        """Join the parts, verify the hash, and add the file as a document."""
        filed = await uploads.finish(
            document_principal(requester),
            upload_id,
            request.name,
            node_id=request.node_id,
            metadata=request.metadata,
            document_id=request.document_id,
            engine=engine_of(request.engine),
        )
        return await _filed(documents, requester, filed)

    @api.delete(
        "/uploads/{upload_id}", status_code=204, response_class=Response, responses=problem_responses(404)
    )
    async def abandon_upload(upload_id: UUID, requester: writes) -> None:
        """Abandon an upload; its parts are removed."""
        await uploads.abandon(document_principal(requester), upload_id)

    return api


async def _filed(documents: Documents, requester: Requester, filed: FilingResult) -> Response:
    principal = document_principal(requester)
    extractions = await documents.extractions(principal, filed.document_id)
    active = [extraction.job_id for extraction in extractions if extraction.status in ("queued", "running")]
    response = FiledDocument(
        document=await documents.get(principal, filed.document_id),
        version=filed.version,
        created=filed.created,
        job_id=next(iter(active), None),
    )
    location = requester.link(f"{_DOCUMENTS}/{filed.document_id}")
    return json_response(response, 201 if filed.changed else 200, {"location": location})
