"""The page that submits jobs: an analysis, or any job type with its payload."""

from __future__ import annotations

from typing import Any

from fastapi import Request
from starlette.responses import Response

from duly.apps.analyze.job import JOB_TYPE as ANALYZE
from duly.apps.analyze.request import MAX_BLOB_BYTES, MAX_INLINE_BYTES, MAX_SOURCES, Module
from duly.core.principal import Scope
from duly.features.job_submission.routes import offered_job_types
from duly.http.requester import Requester
from duly.http.service import Service
from duly.pages.render import Pages

_EMPTY: dict[str, Any] = {
    "string": "",
    "integer": 0,
    "number": 0,
    "boolean": False,
    "array": [],
    "object": {},
}


async def page(pages: Pages, request: Request, service: Service, requester: Requester) -> Response:
    """Show the forms for any job type, and for analyses where the application includes them."""
    schemas = {job.name: job.codec.schema() for job in offered_job_types(service.app.registry)}
    limits = {"sources": MAX_SOURCES, "inline": MAX_INLINE_BYTES, "file": MAX_BLOB_BYTES}
    return pages.page(
        request,
        "submit",
        analysis_limits=limits if ANALYZE in schemas else None,
        modules=list(Module),
        job_types=[(name, example(schema)) for name, schema in sorted(schemas.items())],
        may_write=requester.may(Scope.WRITE),
    )


def example(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a payload to start from: required fields empty, optional ones with their defaults."""
    required = set(schema.get("required", ()))
    return {
        name: part["default"] if "default" in part else _EMPTY.get(part.get("type", ""))
        for name, part in schema.get("properties", {}).items()
        if name in required or "default" in part
    }
