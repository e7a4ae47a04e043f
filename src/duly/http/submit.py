"""Jobs are submitted: one with an idempotency key, or many at once."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import APIRouter, Header
from starlette.responses import Response

from duly.client.handle import Handle
from duly.client.job import Call
from duly.client.options import Options
from duly.control.repeats import KEY_FIELD, check_same
from duly.http.answers import accepted, as_json, links
from duly.http.caller import Caller
from duly.http.problems import documented
from duly.http.service import Service, check_among, unknown_job
from duly.http.shapes import Accepted, BulkAccepted, BulkItemAccepted, BulkRequest, JobRequest
from duly.http.strict import StrictRoute
from duly.http.types import check_offered
from duly.model.access import Scope
from duly.model.errors import DulyError, Forbidden, KeyInFlight, StoreUnavailable
from duly.store import jobs
from duly.store.pool import Connection

_PATIENCE = 10.0
IdempotencyKey = Annotated[
    str | None,
    Header(
        min_length=1,
        max_length=255,
        description="The same key with the same request gives the same job; with another, 422.",
    ),
]


def routes(service: Service) -> APIRouter:
    """Every way to have jobs done by their names."""
    api = APIRouter(prefix="/v1/jobs", tags=["jobs"], route_class=StrictRoute)
    writes = Annotated[Caller, service.allows(Scope.WRITE)]

    @api.post("", status_code=202, response_model=Accepted, responses=documented(409, 413, 415))
    async def submit(request: JobRequest, who: writes, idempotency_key: IdempotencyKey = None) -> Response:
        """Have a job done."""
        await service.check_about(who, request.subject_id)
        call = call_of(service, request, idempotency_key)
        handle = await enqueued(service, who, call)
        return accepted(who, handle.job_id, request.subject_id, replayed=not handle.created)

    @api.post("/bulk", status_code=202, response_model=BulkAccepted, responses=documented(409, 413, 415))
    async def submit_many(request: BulkRequest, who: writes) -> Response:
        """Have many jobs done: all are accepted, or none."""
        calls: list[Call[Any]] = []
        open_to_them = await service.seen(who, [item.subject_id for item in request.jobs], "submit")
        for number, item in enumerate(request.jobs):
            with _named(number):
                check_among(open_to_them, item.subject_id)
                calls.append(call_of(service, item, item.idempotency_key))
        async with service.app.tenant_session(who.org_id) as conn:
            handles = await _enqueued(service, calls, conn)
            for number, (handle, call) in enumerate(zip(handles, calls, strict=True)):
                with _named(number):
                    await _check_found(service, who, conn, handle, call)
        told = [
            BulkItemAccepted(**dict(links(who, handle.job_id, item.subject_id)), replayed=not handle.created)
            for handle, item in zip(handles, request.jobs, strict=True)
        ]
        return as_json(BulkAccepted(jobs=told), 202)

    return api


def call_of(service: Service, request: JobRequest, idempotency_key: str | None) -> Call[Any]:
    """The request as a call of its job type."""
    check_offered(request.job_type)
    job = service.app.registry.get(request.job_type)
    return Call(
        job, job.codec.encode_mapping(request.payload), Options.of(**request.choices(idempotency_key))
    )


async def enqueued(service: Service, who: Caller, call: Call[Any]) -> Handle[Any]:
    """The job, new or found by its key; a key that was used for something else raises."""
    [handle] = await _enqueued(service, [call])
    if not handle.created:
        async with service.app.tenant_session(who.org_id) as conn:
            await _check_found(service, who, conn, handle, call)
    return handle


async def _check_found(
    service: Service, who: Caller, conn: Connection, handle: Handle[Any], call: Call[Any]
) -> None:
    """What was there already must be what was asked for, and the caller's to see."""
    if handle.created:
        return
    first = await jobs.read(conn, who.org_id, handle.job_id)
    if first is None:
        raise unknown_job(handle.job_id)  # its key outlived it
    if call.options.idempotency_key is not None:
        await check_same(service.app, conn, first, call)
    if not await service.sees(who, first.subject_id):
        raise Forbidden(
            "this run is under way for somebody else", field="run_identity", fix="use another identity"
        )


@contextmanager
def _named(number: int) -> Iterator[None]:
    """Errors say which of many they are about."""
    try:
        yield
    except DulyError as error:
        field = "idempotency_key" if error.field == KEY_FIELD else error.field
        error.field = f"jobs.{number}.{field}"
        raise


async def _enqueued(
    service: Service, calls: list[Call[Any]], conn: Connection | None = None
) -> list[Handle[Any]]:
    """Whoever holds a key in an open transaction keeps us waiting, but not for ever."""
    try:
        async with asyncio.timeout(_PATIENCE):
            return await service.app.enqueue_many(calls, conn=conn)
    except TimeoutError:
        if all(call.options.idempotency_key is None for call in calls):
            raise StoreUnavailable("nothing was written in time", fix="ask again in a moment") from None
        raise KeyInFlight(
            "a request with the same key is under way", field=KEY_FIELD, fix="ask again in a moment"
        ) from None
