"""Routes that submit jobs, one with an idempotency key or many at once, and list the job types."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from duly.core.errors import (
    DulyError,
    Forbidden,
    KeyInFlight,
    KeyReused,
    StoreUnavailable,
    UnknownJobType,
)
from duly.core.job import JobSnapshot
from duly.core.payload import canonical_json
from duly.core.principal import Scope
from duly.db.pool import Connection
from duly.features.arguments import unknown_job
from duly.features.job_submission.models import (
    BulkAccepted,
    BulkItemAccepted,
    BulkRequest,
    JobRequest,
    JobTypeList,
    JobTypeResponse,
)
from duly.features.jobs.models import Accepted
from duly.features.jobs.responses import accepted, links
from duly.features.system_jobs import is_system_job
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response
from duly.http.service import Service, check_may_submit
from duly.http.strict_requests import StrictRoute
from duly.jobs import store as job_store
from duly.jobs.application import App
from duly.jobs.enqueue_options import EnqueueOptions
from duly.jobs.handle import Handle
from duly.jobs.job import Call, Job
from duly.jobs.registry import Registry

_ENQUEUE_TIMEOUT = 10.0
_KEY_FIELD = "Idempotency-Key"
"""The field in errors: the name of the header."""
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="The same key with the same request returns the same job; with another request, 422.",
    ),
]


def routes(service: Service) -> APIRouter:
    """Return the routes of submission."""
    api = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
    reads = Annotated[Requester, service.allows(Scope.READ)]
    writes = Annotated[Requester, service.allows(Scope.WRITE)]
    refusals = problem_responses(409, 413, 415)

    @api.post("/jobs", status_code=202, response_model=Accepted, responses=refusals)
    async def submit(
        request: JobRequest, requester: writes, idempotency_key: IdempotencyKey = None
    ) -> Response:
        """Submit a job."""
        await service.check_submit(requester, request.subject_id)
        handle = await enqueue_call(service, requester, build_call(service, request, idempotency_key))
        return accepted(requester, handle.job_id, request.subject_id, replayed=not handle.created)

    @api.post("/jobs/bulk", status_code=202, response_model=BulkAccepted, responses=refusals)
    async def submit_many(request: BulkRequest, requester: writes) -> Response:
        """Submit many jobs: all are accepted, or none."""
        calls: list[Call[Any]] = []
        visible = await service.visible_subjects(
            requester, [item.subject_id for item in request.jobs], "submit"
        )
        for number, item in enumerate(request.jobs):
            with _name_item(number):
                check_may_submit(visible, item.subject_id)
                calls.append(build_call(service, item, item.idempotency_key))
        async with service.app.tenant_session(requester.org_id) as conn:
            handles = await _enqueue(service, calls, conn)
            for number, (handle, call) in enumerate(zip(handles, calls, strict=True)):
                with _name_item(number):
                    await _check_existing(service, requester, conn, handle, call)
        items = [
            BulkItemAccepted(
                **dict(links(requester, handle.job_id, item.subject_id)), replayed=not handle.created
            )
            for handle, item in zip(handles, request.jobs, strict=True)
        ]
        return json_response(BulkAccepted(jobs=items), 202)

    @api.get("/job-types", response_model=JobTypeList, responses=problem_responses())
    async def job_types(requester: reads) -> dict[str, object]:
        """List the job types of the application by name."""
        offered = sorted(offered_job_types(service.app.registry), key=lambda job: job.name)
        return {"job_types": [JobTypeResponse.of(job) for job in offered]}

    return api


def offered_job_types(registry: Registry) -> Iterator[Job[..., Any]]:
    """Yield the job types of the application, without Duly's own maintenance jobs."""
    return (job for job in registry if not is_system_job(job.name))


def check_offered(job_type: str) -> None:
    """Raise as for an unknown job type if it is one of Duly's own."""
    if is_system_job(job_type):
        raise UnknownJobType(
            f"{job_type!r} is not declared", field="job_type", fix="list the job types of the application"
        )


def build_call(service: Service, request: JobRequest, idempotency_key: str | None) -> Call[Any]:
    """Return the call of the job type that a request names."""
    check_offered(request.job_type)
    job = service.app.registry.get(request.job_type)
    return Call(
        job,
        job.codec.encode_mapping(request.payload),
        EnqueueOptions.of(**request.enqueue_keywords(idempotency_key)),
    )


async def enqueue_call(service: Service, requester: Requester, call: Call[Any]) -> Handle[Any]:
    """Enqueue a job, or return the one of its key; raise if the key belongs to another request."""
    [handle] = await _enqueue(service, [call])
    if not handle.created:
        async with service.app.tenant_session(requester.org_id) as conn:
            await _check_existing(service, requester, conn, handle, call)
    return handle


async def _check_existing(
    service: Service, requester: Requester, conn: Connection, handle: Handle[Any], call: Call[Any]
) -> None:
    """Raise unless an existing job is the one that was requested, and visible to the requester."""
    if handle.created:
        return
    first = await job_store.read_job(conn, requester.org_id, handle.job_id)
    if first is None:
        raise unknown_job(handle.job_id)  # the key outlived its job
    if call.options.idempotency_key is not None:
        await _check_same_request(service.app, conn, first, call)
    if not await service.is_visible(requester, first.subject_id):
        raise Forbidden(
            "a run with this identity is in flight for another subject",
            field="run_identity",
            fix="use another identity",
        )


async def _check_same_request(app: App, conn: Connection, first: JobSnapshot, call: Call[Any]) -> None:
    """Raise unless the job of an idempotency key is the one that is requested now."""
    joined = first.run_identity_hash is not None and first.run_identity_hash == call.options.run_identity_hash
    if joined and first.idempotency_key != call.options.idempotency_key:
        return  # found by its run identity: the request joins that run
    payload = canonical_json(await job_store.read_payload(app, conn, first))
    requested = (call.job.name, call.options.subject_id, canonical_json(json.loads(call.payload)))
    if (first.job_type, first.subject_id, payload) != requested:
        raise KeyReused(
            "this key was used for another request", field=_KEY_FIELD, fix="use each key for one request only"
        )


@contextmanager
def _name_item(number: int) -> Iterator[None]:
    """Add the number of the item to the field of an error."""
    try:
        yield
    except DulyError as error:
        field = "idempotency_key" if error.field == _KEY_FIELD else error.field
        error.field = f"jobs.{number}.{field}"
        raise


async def _enqueue(
    service: Service, calls: list[Call[Any]], conn: Connection | None = None
) -> list[Handle[Any]]:
    """Enqueue calls, but do not wait forever for another transaction that holds one of the keys."""
    try:
        async with asyncio.timeout(_ENQUEUE_TIMEOUT):
            return await service.app.enqueue_many(calls, conn=conn)
    except TimeoutError:
        if all(call.options.idempotency_key is None for call in calls):
            raise StoreUnavailable("enqueueing timed out", fix="retry in a moment") from None
        raise KeyInFlight(
            "a request with the same key is in flight", field=_KEY_FIELD, fix="retry in a moment"
        ) from None
