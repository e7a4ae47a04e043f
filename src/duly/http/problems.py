"""Errors as RFC 9457 problems: a stable code, the invalid fields with a fix, and the id of the request."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from duly.core import errors
from duly.core.errors import DulyError

log = logging.getLogger("duly.http")
MAX_FIELD_PROBLEMS = 20
MEDIA_TYPE = "application/problem+json"
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_STATUS: tuple[tuple[type[DulyError], int], ...] = (
    (errors.Unauthenticated, 401),
    (errors.Forbidden, 403),
    (errors.CursorExpired, 410),
    (errors.UnknownJobType, 422),
    (errors.UnknownProject, 422),
    (errors.NotFound, 404),
    (errors.KeyReused, 422),
    (errors.Conflict, 409),
    (errors.ContractError, 422),
    (errors.LimitExceeded, 429),
    (errors.StoreError, 503),
)
TITLES = {
    400: "Bad request",
    401: "Not authenticated",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Content too large",
    415: "Unsupported media type",
    422: "Invalid request",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}
HTTP_CODES = {
    404: "route.unknown",
    405: "method.not_allowed",
    413: "request.too_large",
    415: "media_type.unsupported",
}
"""Codes of requests that are refused before a route runs."""
_EVERY_ROUTE = (400, 401, 403, 422, 429, 503)


class FieldProblem(BaseModel):
    """What is wrong with one field, and how to fix it."""

    field: str = Field(description="The path of the field, such as `jobs.3.payload.region`.")
    message: str
    fix: str | None = None


class Problem(BaseModel):
    """An error as RFC 9457 describes it, with a stable code."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="`urn:duly:problem:` and the code.")
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; the reference of errors lists all codes.")
    request_id: str
    errors: list[FieldProblem] = []


def problem_response(
    request: Request,
    status: int,
    code: str,
    detail: str,
    fields: list[FieldProblem] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Return a problem as a response."""
    problem = Problem(
        type=f"urn:duly:problem:{code}",
        title=TITLES.get(status, "Error"),
        status=status,
        detail=detail,
        code=code,
        request_id=request.scope.get("duly.request_id", ""),
        errors=fields or [],
    )
    # The detail may quote a request that is not valid UTF-8.
    content = json.dumps(problem.model_dump(exclude_none=True), ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, status, dict(headers or {}), media_type=MEDIA_TYPE)


def status_of(error: DulyError) -> int:
    """Return the HTTP status of an error."""
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def error_response(request: Request, error: DulyError, status: int | None = None) -> Response:
    """Return the problem of one of Duly's errors."""
    status = status or status_of(error)
    if status == 500:
        return internal_error_response(request, error)
    if status == 503:
        return unavailable_response(request, error, error.code)
    fields = [FieldProblem(field=error.field, message=error.message, fix=error.fix)] if error.field else []
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="duly"'
    if status == 429 or isinstance(error, errors.KeyInFlight):
        headers["Retry-After"] = str(getattr(error, "retry_after", 1))
    return problem_response(request, status, error.code, str(error), fields, headers)


def http_error_response(request: Request, error: HTTPException) -> Response:
    """Return the problem of a request that the framework refused, or of a body that is not JSON."""
    if isinstance(error.__cause__, DulyError):
        return error_response(request, error.__cause__, 400)
    code = HTTP_CODES.get(error.status_code, "request.refused")
    headers = {"Allow": ", ".join(_allowed_methods(request))} if error.status_code == 405 else error.headers
    return problem_response(request, error.status_code, code, str(error.detail), headers=headers)


def _allowed_methods(request: Request) -> list[str]:
    """Return the methods of all routes with this path: the framework names those of one route."""
    routes = request.app.router.routes

    def allowed(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    return [method for method in _METHODS if allowed(method)]


def validation_response(request: Request, error: RequestValidationError) -> Response:
    """Return the problem of a request that does not match the OpenAPI document."""
    fields = [field_problem(found) for found in error.errors()[:MAX_FIELD_PROBLEMS]]
    detail = f"{fields[0].field}: {fields[0].message}"
    return problem_response(request, 422, "request.invalid", detail, fields)


def unavailable_response(request: Request, error: Exception, code: str = errors.StoreError.code) -> Response:
    """Return 503 for an error of the database. Only the log has the text, which may name hosts."""
    log.warning("request %s: %s", request.scope.get("duly.request_id"), error)
    detail = "the service cannot do this right now; retry in a moment"
    return problem_response(request, 503, code, detail, headers={"Retry-After": "1"})


def internal_error_response(request: Request, error: Exception) -> Response:
    """Return 500 for an unexpected error: the log has it under the id of the request."""
    request_id, org_id = request.scope.get("duly.request_id"), request.scope.get("duly.org_id")
    # As fields of the record: the context of the request has ended already.
    ids = {"request_id": request_id, "org_id": org_id and str(org_id)}
    log.error("request %s failed", request_id, exc_info=error, extra=ids)
    detail = "internal error; the log of the service has it under the id of this request"
    return problem_response(request, 500, "duly.error", detail)


def install(api: FastAPI) -> None:
    """Answer every error that leaves a route with a problem."""
    responses: dict[type[Exception], Callable[[Request, Any], Response]] = {
        DulyError: error_response,
        HTTPException: http_error_response,
        RequestValidationError: validation_response,
        psycopg.OperationalError: unavailable_response,
        Exception: internal_error_response,
    }
    for kind, respond in responses.items():
        api.add_exception_handler(kind, _handler(respond))


def _handler(respond: Callable[[Request, Any], Response]) -> Any:
    async def handle(request: Request, error: Exception) -> Response:
        return respond(request, error)

    return handle


def problem_responses(*more: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems of a route for the OpenAPI document: those of every route, and `more`."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": TITLES[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*_EVERY_ROUTE, *more})
    }


_MESSAGES = MappingProxyType(
    {
        "missing": "missing",
        "extra_forbidden": "unknown field",
        "model_attributes_type": "not a JSON object",
        "model_type": "not a JSON object",
        "dict_type": "not a JSON object",
        "list_type": "not a list",
        "tuple_type": "not a list",
        "string_pattern_mismatch": "not in the expected format",
    }
)
PATTERN_HINTS = MappingProxyType(
    {
        "^(evt|msg)_[0-9a-f]{32}_[1-9][0-9]{0,8}$": "send the id unchanged, as the service returned it",
        "^[a-z][a-z0-9_]{0,49}$": "start with a lower-case letter; then up to 49 of a-z, 0-9 and _",
        r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$": "use a-z, 0-9, _ and dots, such as job.failed",
        "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$": "use a language tag such as de or de-AT",
        "^[0-9a-f]{64}$": "send 64 hex digits in lower case",
        r"^\w+$": "use letters, digits and _ only",
        "^[a-z][a-z0-9_]{1,39}$": "start with a lower-case letter; then 1 to 39 of a-z, 0-9 and _",
        "^[a-z]{1,20}$": "use up to 20 lower-case letters",
        r"^(user|api_key):[^\x00-\x1f]+$": "write user:<id> or api_key:<id>",
        "^[a-z][a-z0-9_]*$": "start with a lower-case letter; then a-z, 0-9 and _",
        "^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$": "write env:DROPBOX or file:dropbox",
        "^[A-Za-z0-9!_.-]{1,255}$": "use up to 255 letters, digits and ! _ . -",
        "^[^/]+$": "remove the slashes",
        "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$": "write whsec_ and 24 to 64 bytes in base64",
    }
)
"""A fix for each pattern of the request models, in words."""
_FIXES = MappingProxyType(
    {
        "missing": "add it",
        "extra_forbidden": "remove it, or check its spelling",
        "string_too_short": "enter a value",
        "string_too_long": "shorten it",
        "too_short": "send at least one",
        "too_long": "send fewer at a time",
        "uuid_parsing": "send the id unchanged, as the service returned it",
        "enum": "use one of these values",
        "literal_error": "use one of these values",
        "datetime_from_date_parsing": "write it as 2026-11-16T12:00:00Z",
        "datetime_parsing": "write it as 2026-11-16T12:00:00Z",
        "timezone_aware": "add a zone, such as Z or +02:00",
    }
)
_LOCATIONS = ("body", "query", "path", "header", "cookie")


def field_problem(error: Mapping[str, Any]) -> FieldProblem:
    """Return the problem of one error of pydantic."""
    location, context = [str(part) for part in error["loc"]], error.get("ctx", {})
    path = ".".join(location[1:] if location[0] in _LOCATIONS else location) or location[0]
    message = _MESSAGES.get(error["type"]) or str(error["msg"]).removeprefix("Value error, ")
    fix = context.get("fix") or PATTERN_HINTS.get(context.get("pattern", "")) or _FIXES.get(error["type"])
    return FieldProblem(
        field=f"{path}.{context['within']}" if context.get("within") else path,
        message=message,
        fix=str(fix or "see the schema in /openapi.json"),
    )
