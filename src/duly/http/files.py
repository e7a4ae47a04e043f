"""Files: what callers upload for their jobs, and what jobs leave behind."""

import re
from collections.abc import AsyncIterator
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, HTTPException, Path, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from duly.blobs import BlobNotFound, BlobRef
from duly.client.handle import Handle
from duly.http import streams
from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.errors import ContractError, UnknownArtifact
from duly.store.artifacts import Artifact

UPLOADS = "/v1/blobs"
_BYTES = "application/octet-stream"
_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;[ -~]*)?", re.ASCII)


class BlobKept(BaseModel):
    """Bytes that are kept, to be named in payloads."""

    blob: str = Field(description="The reference.")
    sha256: str
    size: int


class FileShown(BaseModel):
    """A file that a job has left."""

    name: str
    content_type: str
    sha256: str
    size: int
    url: str


class FilesShown(BaseModel):
    """The files of a job, by name."""

    artifacts: list[FileShown]


def routes(service: Service) -> APIRouter:
    """Up and down."""
    api = APIRouter(tags=["files"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    writes = Annotated[Caller, service.allows(Scope.WRITE)]

    @api.post(
        UPLOADS,
        status_code=201,
        response_model=BlobKept,
        responses=documented(413, 415),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {_BYTES: {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
            }
        },
    )
    async def upload(request: Request, who: writes) -> Response:
        """Keep the body as it is; the same bytes twice are one blob."""
        if request.headers.get("content-type", "").startswith("multipart/"):
            raise HTTPException(415, "send the bytes of one file as the body, as in curl --data-binary @file")
        data = await request.body()
        if not data:
            raise ContractError("empty", field="body", fix="send the bytes of the file as the body")
        ref = await (await service.app.ground()).blobs.put(who.org_id, data)
        return as_json(BlobKept(blob=str(ref), sha256=ref.sha256, size=ref.size), 201)

    @api.get("/v1/jobs/{job_id}/artifacts", response_model=FilesShown, responses=documented(404))
    async def artifacts(job_id: UUID, who: reads) -> Response:
        """The files that the job has left, by name."""
        found = await _files(service, who, job_id)
        place = who.link(f"/v1/jobs/{job_id}/artifacts")
        return as_json(FilesShown(artifacts=[_shown(file, place) for file in found]))

    @api.get(
        "/v1/jobs/{job_id}/artifacts/{name:path}",
        response_class=Response,
        responses={**documented(404), 200: {"description": "Its bytes.", "content": {"*/*": {}}}},
    )
    async def download(job_id: UUID, name: Annotated[str, Path(max_length=500)], who: reads) -> Response:
        """One of them, verified while it is read."""
        for file in await _files(service, who, job_id):
            if file.name == name:
                headers = attachment(file.name, file.content_type, file.size, file.sha256)
                return StreamingResponse(await _content(service, who, file), headers=headers)
        raise _no_file()

    return api


async def _files(service: Service, who: Caller, job_id: UUID) -> list[Artifact]:
    handle: Handle[object] = Handle(service.app, who.org_id, job_id)
    await service.check_subject(who, await handle.status())
    return await handle.artifacts()


async def _content(service: Service, who: Caller, file: Artifact) -> AsyncIterator[bytes]:
    """Its bytes. The first are read now: what is no longer kept must be said before the answer begins."""
    blobs = (await service.app.ground()).blobs
    chunks = blobs.stream(BlobRef.parse(file.blob_ref), org_id=who.org_id)
    try:
        return streams.whole(await anext(chunks, b""), chunks)
    except BlobNotFound:
        raise _no_file() from None


def _no_file() -> UnknownArtifact:
    return UnknownArtifact("the job has no such file", field="name", fix="see the artifacts of the job")


def _shown(file: Artifact, place: str) -> FileShown:
    return FileShown(
        name=file.name,
        content_type=file.content_type,
        sha256=file.sha256,
        size=file.size,
        url=f"{place}/{quote(file.name, safe='')}",
    )


def attachment(name: str, content_type: str, size: int, sha256: str) -> dict[str, str]:
    """The headers of a file. Never shown in place: what somebody else has written is no page of ours."""
    return {
        "content-type": content_type if _TYPE.fullmatch(content_type) else _BYTES,
        "content-length": str(size),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "content-security-policy": "sandbox",
        "etag": f'"{sha256}"',
    }
