"""The application: routes, errors, limits, and the document that describes them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from duly.analyze import JOB_TYPE
from duly.client.app import App
from duly.http import (
    alerts,
    analyze,
    audit,
    events,
    explanation,
    feed,
    files,
    health,
    job_logs,
    jobs,
    keys,
    letters,
    members,
    notification_rules,
    notifications,
    org,
    pages,
    platform_limits,
    platform_orgs,
    platform_queues,
    problems,
    projects,
    resolutions,
    results,
    schedules,
    sessions,
    submit,
    subscriptions,
    types,
    webhook_deliveries,
    webhooks,
)
from duly.http.document import document
from duly.http.edge import Edge
from duly.http.options import HttpOptions
from duly.http.service import Service
from duly.http.traced import Traced

_ROOMS = (
    jobs,
    submit,
    events,
    job_logs,
    files,
    results,
    explanation,
    resolutions,
    letters,
    schedules,
    types,
    feed,
    webhooks,
    webhook_deliveries,
    notifications,
    notification_rules,
    subscriptions,
    org,
    alerts,
    audit,
    keys,
    members,
    projects,
    platform_orgs,
    platform_queues,
    platform_limits,
    health,
    sessions,
    pages,
)


def create_app(app: App, options: HttpOptions | None = None) -> FastAPI:
    """The service for an application: to be run by itself, or mounted into another FastAPI application.

    By itself it closes the application when it ends; mounted, that is left to its owner.
    """
    service = Service(app, options or HttpOptions())

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await service.close()
            await app.close()

    api = FastAPI(
        title="Duly",
        version=version("duly"),
        summary="Every job, duly done, and provably so.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # Its own would name paths and queries, and tell the messages of errors; ours say less.
        telemetry={"tracing": False, "logs": False},
    )
    api.state.service = service
    problems.install(api)
    rooms = (*_ROOMS, analyze) if JOB_TYPE in app.registry else _ROOMS
    for room in rooms:
        # One list: routers that are included each cost every request that they do not serve.
        api.router.routes.extend(room.routes(service).routes)
    api.add_middleware(
        Edge,
        body_max=service.options.body_max,
        limits={files.UPLOADS: service.options.upload_max},
    )
    if service.options.traces is not None:
        api.add_middleware(Traced, traces=service.options.traces)  # outermost: the edge is below its span
    api.openapi = lambda: document(api)  # type: ignore[method-assign]
    return api
