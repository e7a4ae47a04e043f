"""Routes of results under their permalinks, of uploads for jobs, and of the artifacts of jobs."""

import re
from collections.abc import AsyncIterator
from dataclasses import asdict
from datetime import datetime
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, HTTPException, Path, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response, StreamingResponse

from duly.blobs import BlobNotFound, BlobRef
from duly.core.errors import ContractError, UnknownArtifact
from duly.core.job import JobSnapshot
from duly.core.principal import Scope
from duly.features.job_results.service import Result, Snapshot, unknown_result
from duly.features.jobs.models import API_PREFIX
from duly.http import sse
from duly.http.params import MAX_INT32, PageSize
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import ResponseModel, list_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute
from duly.jobs.handle import Handle
from duly.jobs.store import Artifact

UPLOADS = "/v1/blobs"
_BYTES = "application/octet-stream"
_CONTENT_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(;[ -~]*)?", re.ASCII)
Seq = Annotated[int | None, Query(ge=1, le=MAX_INT32, description="The number; by default the latest.")]

SnapshotResponse = response_model(
    Snapshot,
    exclude=("expires_at", "summary"),
    kind=(str, "`partial` or `final`."),
    large=(bool, "Whether the list leaves out the value because of its size; get it by its number."),
)
SnapshotPage = list_model("snapshots", SnapshotResponse, "SnapshotPage", after=(int, "The last number."))
ResultResponse = response_model(
    JobSnapshot,
    "Result",
    include=("result_id", "job_id", "job_type", "subject_id", "status", "outcome"),
    snapshot=(SnapshotResponse | None, "Null while there is none."),
    latest_seq=(int, "The number of the latest snapshot; 0 while there is none."),
    expires_at=(datetime | None, "The end of the retention; the snapshot is not deleted earlier."),
    status_url=str,
)
ArtifactResponse = response_model(Artifact, exclude=("artifact_id", "blob_ref"), url=str)
ArtifactList = list_model("artifacts", ArtifactResponse)


class UploadedBlob(BaseModel):
    """A stored blob, to be named in payloads."""

    blob: str = Field(description="The reference.")
    sha256: str
    size: int


def routes(service: Service) -> APIRouter:
    """Return the routes of results and files."""
    api = APIRouter(route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]

    @api.post(
        UPLOADS,
        tags=["files"],
        status_code=201,
        response_model=UploadedBlob,
        responses=problem_responses(413, 415),
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {_BYTES: {"schema": {"type": "string", "format": "binary", "minLength": 1}}},
            }
        },
    )
    async def upload(request: Request, requester: writes) -> UploadedBlob:
        """Store the body as a blob. Idempotent: the same bytes are one blob."""
        if request.headers.get("content-type", "").startswith("multipart/"):
            raise HTTPException(
                415, "send the bytes of one file as the body, such as curl --data-binary @file"
            )
        data = await request.body()
        if not data:
            raise ContractError("empty", field="body", fix="send the bytes of the file as the body")
        ref = await (await service.app.resources()).blobs.put(requester.org_id, data)
        return UploadedBlob(blob=str(ref), sha256=ref.sha256, size=ref.size)

    @api.get(
        "/v1/jobs/{job_id}/artifacts",
        tags=["files"],
        response_model=ArtifactList,
        responses=problem_responses(404),
    )
    async def artifacts(job_id: UUID, requester: reads) -> dict[str, object]:
        """List the artifacts of a job by name."""
        url = requester.link(f"/v1/jobs/{job_id}/artifacts")
        files = await _artifacts(service, requester, job_id)
        return {
            "artifacts": [{**asdict(file), "url": f"{url}/{quote(file.name, safe='')}"} for file in files]
        }

    @api.get(
        "/v1/jobs/{job_id}/artifacts/{name:path}",
        tags=["files"],
        response_class=Response,
        responses={**problem_responses(404), 200: {"description": "The bytes.", "content": {"*/*": {}}}},
    )
    async def download(
        job_id: UUID, name: Annotated[str, Path(max_length=500)], requester: reads
    ) -> Response:
        """Download an artifact of a job; its hash is verified on the way."""
        for file in await _artifacts(service, requester, job_id):
            if file.name == name:
                headers = attachment(file.name, file.content_type, file.size, file.sha256)
                return StreamingResponse(await _content(service, requester, file), headers=headers)
        raise _unknown_artifact()

    @api.get(
        "/v1/results/{result_id}",
        tags=["results"],
        response_model=ResultResponse,
        responses=problem_responses(404),
    )
    async def result(result_id: UUID, requester: reads, seq: Seq = None) -> ResponseModel:
        """Get the latest snapshot of a result, or one by its number; it outlives a failed or canceled job."""
        return result_response(requester, await visible_result(service, requester, result_id, seq))

    @api.get(
        "/v1/results/{result_id}/snapshots",
        tags=["results"],
        response_model=SnapshotPage,
        responses=problem_responses(404),
    )
    async def snapshots(
        result_id: UUID,
        requester: reads,
        after: Annotated[
            int, Query(ge=0, le=MAX_INT32, description="The number of the last snapshot you have.")
        ] = 0,
        limit: PageSize = 50,
    ) -> dict[str, object]:
        """List the snapshots of a result in order: the partial ones, then the final one."""
        await _check_visible(service, requester, await service.results.job(requester.org_id, result_id))
        page = await service.results.list(requester.org_id, result_id, after=after, limit=limit)
        return {"snapshots": page, "after": page[-1].seq if page else after}

    return api


def result_response(requester: Requester, result: Result, prefix: str = API_PREFIX) -> ResponseModel:
    """Return the response of a result."""
    return ResultResponse.model_validate(
        {
            **dict(result.job),
            "snapshot": result.snapshot,
            "latest_seq": result.latest_seq,
            "expires_at": result.expires_at,
            "status_url": requester.link(f"{prefix}/jobs/{result.job.job_id}"),
        }
    )


async def visible_result(
    service: Service, requester: Requester, result_id: UUID, seq: int | None, job_type: str | None = None
) -> Result:
    """Return a result that the requester may see, of the job type that the route serves; else raise."""
    result = await service.results.get(requester.org_id, result_id, seq=seq)
    await _check_visible(service, requester, result.job, job_type)
    return result


async def _check_visible(
    service: Service, requester: Requester, job: JobSnapshot, job_type: str | None = None
) -> None:
    if job_type not in (None, job.job_type) or not await service.is_visible(requester, job.subject_id):
        raise unknown_result(job.result_id)


async def _artifacts(service: Service, requester: Requester, job_id: UUID) -> list[Artifact]:
    handle: Handle[object] = Handle(service.app, requester.org_id, job_id)
    await service.check_subject(requester, await handle.status())
    return await handle.artifacts()


async def _content(service: Service, requester: Requester, file: Artifact) -> AsyncIterator[bytes]:
    """Return the bytes of a file. The first are read now: a missing blob must be a 404."""
    blobs = (await service.app.resources()).blobs
    chunks = blobs.stream(BlobRef.parse(file.blob_ref), org_id=requester.org_id)
    try:
        return sse.prepend(await anext(chunks, b""), chunks)
    except BlobNotFound:
        raise _unknown_artifact() from None


def _unknown_artifact() -> UnknownArtifact:
    return UnknownArtifact("the job has no such artifact", field="name", fix="list the artifacts of the job")


def attachment(name: str, content_type: str, size: int, sha256: str) -> dict[str, str]:
    """Return the headers of a download. Browsers never render it: the content comes from other people."""
    return {
        "content-type": content_type if _CONTENT_TYPE.fullmatch(content_type) else _BYTES,
        "content-length": str(size),
        "content-disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "content-security-policy": "sandbox",
        "etag": f'"{sha256}"',
    }
