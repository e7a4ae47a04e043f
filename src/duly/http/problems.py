"""Errors as RFC 9457 problems: a stable code, the field and the fix, and the id of the request."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from duly.http.sentences import field_of, fix_of, message_of
from duly.model import errors
from duly.model.errors import DulyError

log = logging.getLogger("duly.http")
_MOST_SHOWN = 20
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
    401: "Who is asking?",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    410: "Gone",
    413: "Too large",
    415: "Unsupported media type",
    422: "Not valid",
    429: "Too much",
    500: "Internal error",
    503: "Not available",
}
HTTP_CODES = {
    404: "route.unknown",
    405: "method.not_allowed",
    413: "request.too_large",
    415: "media_type.unsupported",
}
"""Codes of what is refused before anything of ours is asked."""


class FieldProblem(BaseModel):
    """What is wrong with one field, and what to do about it."""

    field: str = Field(description="The path of the field, as in `jobs.3.payload.region`.")
    message: str
    fix: str | None = None


class Problem(BaseModel):
    """An error: RFC 9457, with a code that does not change."""

    model_config = ConfigDict(title="Problem")

    type: str = Field(description="`urn:duly:problem:` and the code.")
    title: str
    status: int
    detail: str
    code: str = Field(description="Stable; the reference of errors lists all of them.")
    request_id: str
    errors: list[FieldProblem] = []


def answer(
    request: Request,
    status: int,
    code: str,
    detail: str,
    fields: list[FieldProblem] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The problem as an answer."""
    said = Problem(
        type=f"urn:duly:problem:{code}",
        title=TITLES.get(status, "Error"),
        status=status,
        detail=detail,
        code=code,
        request_id=request.scope.get("duly.request_id", ""),
        errors=fields or [],
    )
    # What was sent may be no text, and is named here.
    content = json.dumps(said.model_dump(exclude_none=True), ensure_ascii=False).encode("utf-8", "replace")
    return Response(content, status, dict(headers or {}), media_type=MEDIA_TYPE)


def status_of(error: DulyError) -> int:
    """The status that one of ours is answered with."""
    return next((number for kind, number in _STATUS if isinstance(error, kind)), 500)


def of_error(request: Request, error: DulyError, status: int | None = None) -> Response:
    """One of ours."""
    status = status or status_of(error)
    if status == 500:
        return of_bug(request, error)
    fields = [FieldProblem(field=error.field, message=error.message, fix=error.fix)] if error.field else []
    headers: dict[str, str] = {}
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="duly"'
    if status == 503:
        return of_trouble(request, error, error.code)
    if status == 429 or isinstance(error, errors.KeyInFlight):
        headers["Retry-After"] = str(getattr(error, "retry_after", 1))
    return answer(request, status, error.code, str(error), fields, headers)


def of_http(request: Request, error: HTTPException) -> Response:
    """What was refused before anything of ours was asked, and bodies that cannot be read."""
    if isinstance(error.__cause__, DulyError):
        return of_error(request, error.__cause__, 400)
    code = HTTP_CODES.get(error.status_code, "request.refused")
    headers = {"Allow": ", ".join(_allowed(request))} if error.status_code == 405 else error.headers
    return answer(request, error.status_code, code, str(error.detail), headers=headers)


def _allowed(request: Request) -> list[str]:
    """The methods that its path has, whichever routes they belong to: the framework names those of one."""
    routes = request.app.router.routes

    def found(method: str) -> bool:
        scope = {**request.scope, "method": method}
        return any(route.matches(scope)[0] is Match.FULL for route in routes)

    return [method for method in _METHODS if found(method)]


def of_validation(request: Request, error: RequestValidationError) -> Response:
    """Fields that are not what the document says."""
    fields = [
        FieldProblem(field=field_of(found), message=message_of(found), fix=fix_of(found))
        for found in error.errors()[:_MOST_SHOWN]
    ]
    detail = f"{fields[0].field}: {fields[0].message}"
    return answer(request, 422, "request.invalid", detail, fields)


def of_trouble(request: Request, error: Exception, code: str = errors.StoreError.code) -> Response:
    """What the database could not do now, and may do in a moment. Where it is stays in the log."""
    log.warning("request %s: %s", request.scope.get("duly.request_id"), error)
    detail = "this cannot be done just now; ask again in a moment"
    return answer(request, 503, code, detail, headers={"Retry-After": "1"})


def of_bug(request: Request, error: Exception) -> Response:
    """What should not happen. The log has it; the caller gets the id that finds it there."""
    request_id, org_id = request.scope.get("duly.request_id"), request.scope.get("duly.org_id")
    # Said here: the request is over already.
    ids = {"request_id": request_id, "org_id": org_id and str(org_id)}
    log.error("request %s failed", request_id, exc_info=error, extra=ids)
    return answer(request, 500, "duly.error", "something went wrong here; the log has it by the request's id")


def install(api: FastAPI) -> None:
    """Every error that can leave a route becomes a problem."""
    kinds: dict[type[Exception], Any] = {
        DulyError: of_error,
        HTTPException: of_http,
        RequestValidationError: of_validation,
        psycopg.OperationalError: of_trouble,
        Exception: of_bug,
    }
    for kind, answered in kinds.items():
        api.add_exception_handler(kind, _handler(answered))


def _handler(answered: Any) -> Any:
    async def handle(request: Request, error: Exception) -> Response:
        made: Response = answered(request, error)
        return made

    return handle


_COMMON = (400, 401, 403, 422, 429, 503)


def documented(*more: int) -> dict[int | str, dict[str, Any]]:
    """The problems a route can answer with, for the OpenAPI document; `more` than those of every route."""
    schema = {"$ref": "#/components/schemas/Problem"}
    return {
        status: {"description": TITLES[status], "content": {MEDIA_TYPE: {"schema": schema}}}
        for status in sorted({*_COMMON, *more})
    }
