"""The FastAPI application: routes, middleware, problems and the OpenAPI document."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import ModuleType

from fastapi import FastAPI

from duly import pages
from duly.apps.analyze import JOB_TYPE as ANALYZE_JOB
from duly.apps.analyze import routes as analyze
from duly.apps.documents.classification import routes as document_classification
from duly.apps.documents.exports import routes as document_exports
from duly.apps.documents.extraction import routes as document_extraction
from duly.apps.documents.extraction.service import JOB_TYPE as EXTRACTION_JOB
from duly.apps.documents.folders import routes as document_folders
from duly.apps.documents.imports import routes as document_imports
from duly.apps.documents.library import routes as documents
from duly.apps.documents.search import routes as document_search
from duly.apps.documents.uploads import routes as document_uploads
from duly.apps.documents.uploads.service import PART_SIZE
from duly.features.alerts import routes as alerts
from duly.features.api_keys import routes as api_keys
from duly.features.audit import routes as audit
from duly.features.bulk import routes as bulk
from duly.features.dead_letters import routes as dead_letters
from duly.features.events import routes as events
from duly.features.job_detail import routes as job_detail
from duly.features.job_logs import routes as job_logs
from duly.features.job_results import routes as job_results
from duly.features.job_submission import routes as job_submission
from duly.features.jobs import routes as jobs
from duly.features.limits import routes as limits
from duly.features.members import routes as members
from duly.features.notifications import routes as notifications
from duly.features.orgs import routes as orgs
from duly.features.queues import routes as queues
from duly.features.schedules import routes as schedules
from duly.features.sessions import routes as sessions
from duly.features.subscriptions import routes as subscriptions
from duly.features.templates import routes as templates
from duly.features.webhooks import routes as webhooks
from duly.http import health, problems
from duly.http.middleware import BodyLimit, RequestMiddleware, TracingMiddleware
from duly.http.openapi import openapi_document
from duly.http.options import HttpOptions
from duly.http.service import Service
from duly.jobs.application import App

_FEATURES = (
    jobs,
    bulk,
    job_submission,
    events,
    job_logs,
    job_results,
    job_detail,
    dead_letters,
    schedules,
    webhooks,
    notifications,
    templates,
    subscriptions,
    orgs,
    alerts,
    audit,
    api_keys,
    members,
    queues,
    limits,
    health,
    sessions,
    pages,
)
_DOCUMENTS = (
    # Before the documents, whose routes would read these names as ids.
    document_search,
    document_uploads,
    document_folders,
    document_imports,
    document_classification,
    document_exports,
    document_extraction,
    documents,
)


def create_app(app: App, options: HttpOptions | None = None) -> FastAPI:
    """Return the HTTP service of an application, to be served by itself or mounted into another FastAPI one.

    Served by itself it closes the application when it ends; mounted, the owner closes it.
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
        # FastAPI's spans would contain paths, queries and error messages; those of the middleware do not.
        telemetry={"tracing": False, "logs": False},
    )
    api.state.service = service
    problems.install(api)
    for feature in _features(app):
        # One list: each included router costs every request that it does not serve.
        api.router.routes.extend(feature.routes(service).routes)
    api.add_middleware(
        RequestMiddleware, body_max=service.options.body_max, limits=_body_limits(service.options.upload_max)
    )
    if service.options.traces is not None:
        # Outermost: the other middleware runs inside of its span.
        api.add_middleware(TracingMiddleware, traces=service.options.traces)
    api.openapi = lambda: openapi_document(api)  # type: ignore[method-assign]
    return api


def _features(app: App) -> Sequence[ModuleType]:
    """Return the modules with routes: the features, and the applications that are included."""
    analyses = (analyze,) if ANALYZE_JOB in app.registry else ()
    return (*_FEATURES, *analyses, *(_DOCUMENTS if EXTRACTION_JOB in app.registry else ()))


def _body_limits(upload_max: int) -> Sequence[BodyLimit]:
    """Return the limits of bodies that are files."""
    file = re.compile(r"/v1/documents(/[^/]+/content)?")
    part = re.compile(rf"{document_uploads.UPLOADS}/[^/]+/parts/[^/]+")
    return (
        BodyLimit(re.compile(re.escape(job_results.UPLOADS)), upload_max),
        BodyLimit(file, upload_max, f"send it in parts: POST {document_uploads.UPLOADS}"),
        BodyLimit(part, PART_SIZE),
    )
