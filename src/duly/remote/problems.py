"""Answers that are errors: problems (RFC 9457) become the errors of the model again."""

from __future__ import annotations

import httpx
from pydantic import BaseModel, ValidationError

from duly.model import errors
from duly.model.errors import DulyError


class Unreachable(DulyError):
    """The service did not answer, or something before it answered in its place."""

    code = "service.unreachable"


class BadAnswer(DulyError):
    """The answer is none of the service's, or one that cannot be understood."""

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
    502: Unreachable,
    503: Unreachable,
    504: Unreachable,
}


def error_of(answer: httpx.Response) -> DulyError:
    """The error that an answer means."""
    try:
        said = _Problem.model_validate_json(answer.content)
    except ValidationError:
        return _unsaid(answer)
    first = said.errors[0] if said.errors else _Field(message=said.detail)
    kind = _BY_CODE.get(said.code) or _nearest(answer.status_code)
    error = kind(first.message or said.detail, field=first.field, fix=first.fix)
    return told(error, answer, code=said.code)


def bad_answer(answer: httpx.Response, wanted: str) -> BadAnswer:
    """What cannot be read as what was asked for. The body is not shown: nobody knows what it is."""
    kind = answer.headers.get("content-type", "nothing")
    error = BadAnswer(
        f"{answer.status_code} with {kind}, which is no {wanted}",
        fix="check that the address is the one of the service",
    )
    told(error, answer)
    return error


def unreachable(error: httpx.TransportError) -> Unreachable:
    """A request without an answer."""
    made = Unreachable(
        f"no answer: {type(error).__name__} {error}".rstrip(),
        fix="check the address, and that the service runs",
    )
    made.__cause__ = error
    return made


def told(error: DulyError, answer: httpx.Response, code: str | None = None) -> DulyError:
    """The error with what the answer says about itself."""
    vars(error).update(
        status=answer.status_code,
        request_id=answer.headers.get("x-request-id"),
        **({"code": code} if code else {}),
    )
    return error


def _unsaid(answer: httpx.Response) -> DulyError:
    """No problem of ours: a proxy, or another service."""
    if answer.is_redirect:
        return bad_answer(answer, "answer of the service")
    kind = _nearest(answer.status_code)
    fix = "check the address, and what stands before the service"
    return told(kind(f"{answer.status_code} {answer.reason_phrase}", fix=fix), answer)


def _nearest(status: int) -> type[DulyError]:
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return errors.ContractError if 400 <= status < 500 else DulyError
