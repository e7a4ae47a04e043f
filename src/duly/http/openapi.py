"""The OpenAPI document: FastAPI's, completed by scopes, headers, problems and security schemes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from duly.http.problems import Problem

_DESCRIPTION = """Submit, watch, cancel and list jobs. Every error is a problem (RFC 9457) with a stable
`code`. Every response has `X-Request-Id`, most have `RateLimit`."""
_TAGS = {
    "jobs": "Submit jobs, read their status, cancel them.",
    "results": "Results of jobs, under permalinks.",
    "files": "Uploads for jobs, and artifacts of jobs.",
    "dead letters": "Jobs that exhausted their attempts: replay, fix or discard them.",
    "schedules": "Jobs that run on a cron schedule.",
    "feed": "All events of the org, in commit order.",
    "webhooks": "Events by signed HTTP requests.",
    "notifications": "Messages to people: by email, in the product, by other channels.",
    "org": "The org of the credential: statistics, limits, queues, projects.",
    "audit": "The audit trail: author and reason of every change, and its verification.",
    "keys": "API keys of the org.",
    "members": "Members of the org.",
    "platform": "For operators of the installation.",
    "analyze": "Analyses of texts.",
    "documents": "Files of the org: store, read, search, classify, import and export them.",
    "session": "Sign in and out, for browsers.",
    "health": "For monitoring.",
}
_SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a token of the issuer."},
    "session": {"type": "apiKey", "in": "cookie", "name": "__Host-duly", "description": "A session."},
}
_TEXT = {"schema": {"type": "string"}}
_ACCEPTED = {"Location": "The status of the job.", "Retry-After": "Seconds until the next poll."}
_ETAG = {"ETag": "The version of this state, for `If-None-Match`."}
_REPLAYED = {"Idempotency-Replayed": "`true` if the job existed already."}


def openapi_document(api: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of an application, built once."""
    if api.openapi_schema is None:
        document = get_openapi(
            title=api.title,
            version=api.version,
            summary=api.summary,
            description=_DESCRIPTION,
            routes=api.routes,
        )
        for route in api.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                for method in route.methods or ():
                    _complete(document["paths"][route.path_format][method.lower()], route)
        _complete_components(document)
        api.openapi_schema = document
    return api.openapi_schema


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    """Add a stable id, the first sentence as summary, the scope, and the headers of the responses."""
    operation["operationId"] = f"{operation['tags'][0].replace(' ', '_')}.{route.name}"
    operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
    scopes = (getattr(dependency.call, "scope", None) for dependency in route.dependant.dependencies)
    scope = operation.pop("x-scope", None) or next(filter(None, scopes), None)
    if scope is not None:
        operation["description"] += f"\n\nRequires the scope `{scope}`."
    for status, response in operation["responses"].items():
        if headers := _headers(operation, status, response):
            response["headers"] = {name: {**_TEXT, "description": text} for name, text in headers.items()}


def _headers(operation: dict[str, Any], status: str, response: dict[str, Any]) -> dict[str, str]:
    """Return the headers that a response has besides those of every response."""
    if status in ("200", "304") and "304" in operation["responses"]:
        return _ETAG
    schema = response.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
    if not schema.endswith("/Accepted"):
        return {}
    keyed = any(param["name"] == "idempotency-key" for param in operation.get("parameters", ()))
    return _ACCEPTED | _REPLAYED if keyed else _ACCEPTED


def _complete_components(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update({**problem.pop("$defs"), "Problem": problem})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["securitySchemes"] = _SECURITY_SCHEMES
    document["security"] = [{"bearer": []}, {"session": []}]
    used = {tag for path in document["paths"].values() for method in path.values() for tag in method["tags"]}
    document["tags"] = [{"name": tag, "description": text} for tag, text in _TAGS.items() if tag in used]
