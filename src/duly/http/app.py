"""The application: routes, errors, limits, and the document that describes them."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import ModuleType

from fastapi import FastAPI

from duly import analyze as analyses
from duly.client.app import App
from duly.documents.extraction import asking as extractions
from duly.documents.uploads import PART_SIZE
from duly.http import (
    actions,
    alerts,
    analyze,
    audit,
    document_classes,
    document_connectors,
    document_exports,
    document_files,
    document_folders,
    document_search,
    document_uploads,
    documents,
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
from duly.http.edge import Edge, Limit
from duly.http.options import HttpOptions
from duly.http.service import Service
from duly.http.traced import Traced

_ROOMS = (
    jobs,
    actions,
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
_DOCUMENTS = (
    # Before the documents themselves: to those, these would be ids.
    document_search,
    document_uploads,
    document_folders,
    document_connectors,
    document_classes,
    document_exports,
    document_files,
    documents,
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
    for room in _rooms(app):
        # One list: routers that are included each cost every request that they do not serve.
        api.router.routes.extend(room.routes(service).routes)
    api.add_middleware(Edge, body_max=service.options.body_max, limits=_limits(service.options.upload_max))
    if service.options.traces is not None:
        api.add_middleware(Traced, traces=service.options.traces)  # outermost: the edge is below its span
    api.openapi = lambda: document(api)  # type: ignore[method-assign]
    return api


def _rooms(app: App) -> Sequence[ModuleType]:
    """Those of what the application includes."""
    analyzing = (analyze,) if analyses.JOB_TYPE in app.registry else ()
    return (*_ROOMS, *analyzing, *(_DOCUMENTS if extractions.JOB_TYPE in app.registry else ()))


def _limits(upload_max: int) -> Sequence[Limit]:
    """Bodies that are files."""
    file = re.compile(r"/v1/documents(/[^/]+/content)?")
    part = re.compile(rf"{document_uploads.UPLOADS}/[^/]+/parts/[^/]+")
    return (
        Limit(re.compile(re.escape(files.UPLOADS)), upload_max),
        Limit(file, upload_max, f"send it in parts: POST {document_uploads.UPLOADS}"),
        Limit(part, PART_SIZE),
    )
