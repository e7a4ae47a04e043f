"""Routes of jobs: read the status, wait for a change, list, cancel."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import RedirectResponse, Response

from duly.core.errors import ContractError, UnknownResult
from duly.core.freshness import Freshness
from duly.core.principal import Scope
from duly.core.states import Outcome, Status
from duly.features.jobs.models import CancelRequest, CurrentJobStatus, JobPage, JobStatus, job_status
from duly.features.jobs.responses import cancel_response, status_response, visible_job
from duly.http.params import PageSize, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

_PREFER = "`wait=N`: respond when the status changes, or after N seconds."
_IF_NONE_MATCH = "The `ETag` of the status that you have."
Prefer = Annotated[str | None, Header(description=_PREFER)]
IfNoneMatch = Annotated[str | None, Header(description=_IF_NONE_MATCH)]
Name = Annotated[str | None, Query(min_length=1, max_length=200)]
_STATUS_PARAMETERS = [
    {
        "in": "path",
        "name": "job_id",
        "required": True,
        "schema": {"type": "string", "format": "uuid"},
    },
    {"in": "header", "name": "prefer", "schema": {"type": "string"}, "description": _PREFER},
    {"in": "header", "name": "if-none-match", "schema": {"type": "string"}, "description": _IF_NONE_MATCH},
]
CANCEL_RESPONSES = {
    **problem_responses(404, 409, 413, 415),
    200: {"model": JobStatus, "description": "The job is canceled."},
}


def routes(service: Service) -> APIRouter:
    """Return the routes of jobs."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]

    # First, and without parameters of FastAPI: it is by far the most frequent request, and reading the
    # parameters would cost as much as the rest.
    @api.get(
        "/{job_id}",
        response_model=CurrentJobStatus,
        responses={**problem_responses(404), 304: {"description": "Not modified."}},
        openapi_extra={"parameters": _STATUS_PARAMETERS, "x-scope": Scope.READ.value},
    )
    async def status(request: Request) -> Response:
        """Get the status of a job."""
        requester = await service.authenticate(request, Scope.READ)
        reading = await visible_job(service, requester, _job_id(request))
        prefer, if_none_match = request.headers.get("prefer"), request.headers.get("if-none-match")
        return await status_response(service, requester, reading, prefer, if_none_match)

    @api.get("", response_model=JobPage, responses=problem_responses())
    async def list_jobs(
        requester: reads,
        status: Status | None = None,
        outcome: Outcome | None = None,
        job_type: Name = None,
        queue: Name = None,
        subject_id: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
        freshness: Freshness | None = None,
        created_after: Timestamp | None = None,
        created_before: Timestamp | None = None,
        error_code: Name = None,
        fingerprint: Annotated[
            str | None, Query(min_length=1, max_length=500, description="The kind of the failure.")
        ] = None,
        payload: Annotated[
            list[str] | None,
            Query(
                max_length=10,
                description="`path:value`, such as `items.0.sku:X1`; the payload contains all of them. "
                "Requires the scope `operate`. Large payloads, which are stored as blobs, never match.",
            ),
        ] = None,
        metadata: Annotated[
            list[str] | None,
            Query(max_length=20, description="`key:value`; the metadata contains all of them."),
        ] = None,
        limit: PageSize = 50,
        after: Annotated[str | None, Query(max_length=500)] = None,
    ) -> Response:
        """List the jobs of the org, newest first; of a final status, last ended first.

        A filter without an index scans a bounded number of jobs: a page may be short or empty although
        more pages follow.
        """
        if payload:
            requester.principal.require(Scope.OPERATE)  # the scope that reads payloads
        if not await service.is_visible(requester, subject_id):
            return json_response(JobPage(jobs=[], after=None))
        page = await service.jobs.list(
            requester.org_id,
            status=status,
            outcome=outcome,
            job_type=job_type,
            queue=queue,
            subject_id=subject_id,
            freshness=freshness,
            created_after=created_after,
            created_before=created_before,
            error_code=error_code,
            fingerprint=fingerprint,
            metadata=_pairs("metadata", metadata),
            payload=_pairs("payload", payload),
            limit=limit,
            after=after,
        )
        visible = await service.visible_subjects(requester, [job.subject_id for job in page.jobs])
        jobs = [job for job in page.jobs if job.subject_id in visible]
        freshness_by_id = await service.jobs.freshness(requester.org_id, jobs)
        items = [job_status(requester, job, freshness_by_id[job.job_id]) for job in jobs]
        return json_response(JobPage.model_construct(jobs=items, after=page.after))

    @api.get(
        "/{job_id}/result",
        status_code=303,
        response_class=Response,
        responses={**problem_responses(404), 303: {"description": "The permalink."}},
    )
    async def result(job_id: UUID, requester: reads) -> Response:
        """Redirect to the permalink of the result."""
        job = (await visible_job(service, requester, job_id)).job
        if job.status is not Status.COMPLETED and not job.partial_count:
            raise UnknownResult("no result yet", field="job_id", fix="wait until the job has completed")
        return RedirectResponse(requester.link(f"/v1/results/{job.result_id}"), 303)

    @api.post("/{job_id}/cancel", status_code=202, response_model=JobStatus, responses=CANCEL_RESPONSES)
    async def cancel(job_id: UUID, requester: writes, request: CancelRequest | None = None) -> Response:
        """Cancel a job: 200 if it is canceled, 202 if its worker was notified. Idempotent."""
        before = await visible_job(service, requester, job_id, action="change")
        return await cancel_response(service, requester, before, (request or CancelRequest()).reason)

    return api


def _job_id(request: Request) -> UUID:
    try:
        return UUID(request.path_params["job_id"])
    except ValueError:
        error = {"type": "uuid_parsing", "loc": ("path", "job_id"), "msg": "not a uuid"}
        raise RequestValidationError([error]) from None


def _pairs(field: str, texts: list[str] | None) -> dict[str, str] | None:
    if not texts:
        return None
    pairs = [text.partition(":") for text in texts]
    if any(not key or not colon for key, colon, _ in pairs):
        raise ContractError("not a key and a value", field=field, fix="write it as key:value")
    return {key: value for key, _, value in pairs}
