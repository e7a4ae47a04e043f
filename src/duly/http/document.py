"""The OpenAPI document: what FastAPI makes of the routes, with what it does not know."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from duly.http.problems import Problem

_ABOUT = """Jobs are asked for, watched, canceled and found again. Every answer that is no success is a
problem after RFC 9457 with a stable `code`. Every answer has `X-Request-Id`, most have `RateLimit`."""
_TAGS = {
    "jobs": "Have jobs done, look at them, end them.",
    "results": "What jobs have brought, under permalinks.",
    "files": "Bytes for jobs, and bytes of jobs.",
    "dead letters": "What died, and what is done about it.",
    "schedules": "What is to be done again and again.",
    "feed": "Every event of the org, in the order of commits.",
    "webhooks": "Being told of events, over HTTP and signed.",
    "notifications": "People are told: by mail, in the product, by other channels; also how jobs end.",
    "org": "The org of the credential: figures, limits, queues, projects.",
    "audit": "Who changed what and why, and the proof that nobody changed it since.",
    "keys": "API keys of the org.",
    "members": "People of the org.",
    "platform": "For those who look after the installation.",
    "analyze": "Analyses of texts.",
    "documents": "Files of the org: kept, read, found, classified, brought in and given out.",
    "session": "Logging in and out, for browsers.",
    "health": "For those who look after processes.",
}
_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "An API key, or a token of the issuer."},
    "session": {"type": "apiKey", "in": "cookie", "name": "__Host-duly", "description": "Of a log-in."},
}
_TEXT = {"schema": {"type": "string"}}
_ACCEPTED = {"Location": "Where to look for it.", "Retry-After": "When to look again, in seconds."}
_ETAG = {"ETag": "Of this state; for `If-None-Match`."}
_REPLAYED = {"Idempotency-Replayed": "`true` if the job was there already."}


def document(api: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1, made once."""
    if api.openapi_schema is None:
        made = get_openapi(
            title=api.title, version=api.version, summary=api.summary, description=_ABOUT, routes=api.routes
        )
        for route in api.routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                for method in route.methods or ():
                    _complete(made["paths"][route.path_format][method.lower()], route)
        _add_parts(made)
        api.openapi_schema = made
    return api.openapi_schema


def _complete(operation: dict[str, Any], route: APIRoute) -> None:
    """A name that lasts, a sentence as its summary, the scope it needs, and the headers it answers with."""
    operation["operationId"] = f"{operation['tags'][0].replace(' ', '_')}.{route.name}"
    operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
    asked = (getattr(one.call, "scope", None) for one in route.dependant.dependencies)
    scope = operation.pop("x-scope", None) or next(filter(None, asked), None)
    if scope is not None:
        operation["description"] += f"\n\nNeeds the scope `{scope}`."
    for status, answer in operation["responses"].items():
        if headers := _headers(operation, status, answer):
            answer["headers"] = {name: {**_TEXT, "description": said} for name, said in headers.items()}


def _headers(operation: dict[str, Any], status: str, answer: dict[str, Any]) -> dict[str, str]:
    """What an answer has besides what every one has."""
    if status in ("200", "304") and "304" in operation["responses"]:
        return _ETAG
    shape = answer.get("content", {}).get("application/json", {}).get("schema", {}).get("$ref", "")
    if not shape.endswith("/Accepted"):
        return {}
    keyed = any(one["name"] == "idempotency-key" for one in operation.get("parameters", ()))
    return _ACCEPTED | _REPLAYED if keyed else _ACCEPTED


def _add_parts(made: dict[str, Any]) -> None:
    parts = made.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    problem = Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update({**problem.pop("$defs"), "Problem": problem})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    parts["securitySchemes"] = _SCHEMES
    made["security"] = [{"bearer": []}, {"session": []}]
    used = {
        tag for path in made["paths"].values() for operation in path.values() for tag in operation["tags"]
    }
    made["tags"] = [{"name": tag, "description": said} for tag, said in _TAGS.items() if tag in used]
