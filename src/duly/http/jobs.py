"""Jobs: looked at, waited for, listed, canceled."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Header, Query, Request
from fastapi.exceptions import RequestValidationError
from starlette.responses import RedirectResponse, Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.shapes import (
    CancelRequest,
    JobPageShown,
    JobStatus,
    JobStatusNow,
    shown,
)
from duly.http.strict import StrictRoute
from duly.http.values import Moment
from duly.http.verbs import canceled, look, polled
from duly.model.access import Scope
from duly.model.errors import ContractError, UnknownResult
from duly.model.freshness import Freshness
from duly.model.states import Outcome, Status

WAIT = "`wait=N`: answer when it changed, or after N seconds."
KNOWN = "The `ETag` of the status that you have."
Wait = Annotated[str | None, Header(description=WAIT)]
Known = Annotated[str | None, Header(description=KNOWN)]
_UUID = {"type": "string", "format": "uuid"}
_BY_HAND = [
    {"in": "path", "name": "job_id", "required": True, "schema": _UUID},
    {"in": "header", "name": "prefer", "schema": {"type": "string"}, "description": WAIT},
    {"in": "header", "name": "if-none-match", "schema": {"type": "string"}, "description": KNOWN},
]


def routes(service: Service) -> APIRouter:
    """Everything about jobs that callers do."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Caller, service.allows(Scope.READ)]
    writes = Annotated[Caller, service.allows(Scope.WRITE)]

    # First and by hand: nothing is asked as often, and what FastAPI reads for us costs as much as the rest.
    @api.get(
        "/{job_id}",
        response_model=JobStatusNow,
        responses={**documented(404), 304: {"description": "As you have it."}},
        openapi_extra={"parameters": _BY_HAND, "x-scope": Scope.READ.value},
    )
    async def status(request: Request) -> Response:
        """One job as it is now."""
        who = await service.caller(request, Scope.READ)
        seen = await look(service, who, _job_id(request))
        prefer, known = request.headers.get("prefer"), request.headers.get("if-none-match")
        return await polled(service, who, seen, prefer, known)

    @api.get("", response_model=JobPageShown, responses=documented())
    async def list_jobs(
        who: reads,
        status: Status | None = None,
        outcome: Outcome | None = None,
        job_type: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
        queue: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
        subject_id: Annotated[str | None, Query(min_length=1, max_length=500)] = None,
        freshness: Freshness | None = None,
        created_after: Moment | None = None,
        created_before: Moment | None = None,
        error_code: Annotated[str | None, Query(min_length=1, max_length=200)] = None,
        fingerprint: Annotated[
            str | None, Query(min_length=1, max_length=500, description="The kind of failure they died of.")
        ] = None,
        payload: Annotated[
            list[str] | None,
            Query(
                max_length=10,
                description="`path:value`, as in `items.0.sku:X1`; the payload has all of them. Needs the "
                "scope `operate`. Large payloads, which lie in the blobs, are never found.",
            ),
        ] = None,
        metadata: Annotated[
            list[str] | None,
            Query(max_length=20, description="`key:value`; the job's metadata has all of them."),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=500)] = 50,
        after: Annotated[str | None, Query(max_length=500)] = None,
    ) -> Response:
        """The jobs of the org, the newest first; of an ended status, the last to end first.

        A filter that no index serves looks at so many jobs and no more: a page may then be short, even empty,
        although others follow.
        """
        if payload:
            who.principal.require(Scope.OPERATE)  # nobody else sees payloads
        if not await service.sees(who, subject_id):
            return as_json(JobPageShown(jobs=[], after=None))
        page = await service.jobs.list(
            who.org_id,
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
        open_to_them = await service.seen(who, [job.subject_id for job in page.jobs])
        seen = [job for job in page.jobs if job.subject_id in open_to_them]
        fresh = await service.jobs.freshness(who.org_id, seen)
        return as_json(
            JobPageShown(jobs=[shown(who, job, fresh[job.job_id]) for job in seen], after=page.after)
        )

    @api.get(
        "/{job_id}/result",
        status_code=303,
        response_class=Response,
        responses={**documented(404), 303: {"description": "The permalink."}},
    )
    async def result(job_id: UUID, who: reads) -> Response:
        """Where its result is found for good."""
        job = (await look(service, who, job_id)).job
        if job.status is not Status.COMPLETED and not job.partial_count:
            raise UnknownResult("there is no result yet", field="job_id", fix="wait for it: see its status")
        return RedirectResponse(who.link(f"/v1/results/{job.result_id}"), 303)

    @api.post(
        "/{job_id}/cancel",
        status_code=202,
        response_model=JobStatus,
        responses={
            **documented(404, 409, 413, 415),
            200: {"model": JobStatus, "description": "It has ended so."},
        },
    )
    async def cancel(job_id: UUID, who: writes, request: CancelRequest | None = None) -> Response:
        """Ask for its end: 200 if it is canceled, 202 if its worker was asked; asked again, the same."""
        before = await look(service, who, job_id, action="change")
        return await canceled(service, who, before, (request or CancelRequest()).reason)

    return api


def _job_id(request: Request) -> UUID:
    try:
        return UUID(request.path_params["job_id"])
    except ValueError:
        wrong = {"type": "uuid_parsing", "loc": ("path", "job_id"), "msg": "not a uuid"}
        raise RequestValidationError([wrong]) from None


def _pairs(field: str, said: list[str] | None) -> dict[str, str] | None:
    if not said:
        return None
    split = [pair.partition(":") for pair in said]
    if any(not key or not colon for key, colon, _ in split):
        raise ContractError("no key and value", field=field, fix="write it as key:value")
    return {key: value for key, _, value in split}
