"""Errors of the service: problems (RFC 9457) become the errors of `duly.core` again."""

from __future__ import annotations

import httpx
from pydantic import BaseModel, ValidationError

from duly.core import errors
from duly.core.errors import DulyError


class ServiceUnreachable(DulyError):
    """The service did not respond, or a proxy responded in its place."""

    code = "service.unreachable"


class InvalidResponse(DulyError):
    """The response is not one of the service, or malformed."""

    code = "service.bad_answer"


class _Field(BaseModel):
    message: str = ""
    field: str | None = None
    fix: str | None = None


class _Problem(BaseModel):
    code: str
    detail: str = ""
    request_id: str | None = None
    errors: list[_Field] = []


_BY_CODE: dict[str, type[DulyError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, DulyError)
}
_BY_STATUS: dict[int, type[DulyError]] = {
    401: errors.Unauthenticated,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    410: errors.NotFound,
    429: errors.LimitExceeded,
    502: ServiceUnreachable,
    503: ServiceUnreachable,
    504: ServiceUnreachable,
}


def error_of(response: httpx.Response) -> DulyError:
    """Return the error of a response."""
    try:
        problem = _Problem.model_validate_json(response.content)
    except ValidationError:
        return _error_without_problem(response)
    first = problem.errors[0] if problem.errors else _Field(message=problem.detail)
    kind = _BY_CODE.get(problem.code) or _error_class(response.status_code)
    error = kind(first.message or problem.detail, field=first.field, fix=first.fix)
    return _with_response(error, response, code=problem.code)


def invalid_response(response: httpx.Response, expected: str) -> InvalidResponse:
    """Return the error of a response that is not what was expected. Its body may be anything: not shown."""
    kind = response.headers.get("content-type", "no content type")
    error = InvalidResponse(
        f"{response.status_code} with {kind}, expected {expected}",
        fix="check that the URL is that of the service",
    )
    _with_response(error, response)
    return error


def unreachable(error: httpx.TransportError) -> ServiceUnreachable:
    """Return the error of a request without a response."""
    unreachable = ServiceUnreachable(
        f"no response: {type(error).__name__} {error}".rstrip(),
        fix="check the URL, and that the service runs",
    )
    unreachable.__cause__ = error
    return unreachable


def _with_response(error: DulyError, response: httpx.Response, code: str | None = None) -> DulyError:
    """Add the status and the id of the request to an error."""
    vars(error).update(
        status=response.status_code,
        request_id=response.headers.get("x-request-id"),
        **({"code": code} if code else {}),
    )
    return error


def _error_without_problem(response: httpx.Response) -> DulyError:
    """Return the error of a response without a problem: of a proxy, or of another service."""
    if response.is_redirect:
        return invalid_response(response, "a response of the service")
    kind = _error_class(response.status_code)
    fix = "check the URL, and the proxies before the service"
    return _with_response(kind(f"{response.status_code} {response.reason_phrase}", fix=fix), response)


def _error_class(status: int) -> type[DulyError]:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.ContractError if 400 <= status < 500 else DulyError
