"""Requests are read strictly: JSON without duplicate keys, NaN or endless depth; no unknown parameters."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from duly.model import payload
from duly.model.errors import PayloadRefused

_MOST_FIELDS, _MOST_LISTED = 100, 20_000


class _StrictRequest(Request):
    async def json(self) -> Any:
        found = payload.parse(await self.body())
        if isinstance(found, dict) and (len(found) > _MOST_FIELDS or _listed(found) > _MOST_LISTED):
            # Each that is not known would be named: a small body could keep us busy for long.
            raise PayloadRefused("too many fields", field="body", fix="send those that the document names")
        return found


def _listed(found: dict[str, Any]) -> int:
    """How many fields the things in its lists have."""
    inner = [one for value in found.values() if isinstance(value, list) for one in value]
    return sum(len(one) if isinstance(one, dict) else 1 for one in inner)


class StrictRoute(APIRoute):
    """A route that ignores nothing it is sent: `APIRouter(route_class=StrictRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What FastAPI runs for a request."""
        handle = super().get_route_handler()
        takes_json = self.body_field is not None
        known = {param.alias for param in self.dependant.query_params}

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_query(request, known)
            if not takes_json:
                return await handle(request)
            if not _is_json(request):
                raise HTTPException(415, "send JSON, with `Content-Type: application/json`")
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict


def _check_query(request: Request, known: set[str]) -> None:
    """A parameter that is misspelled would be left out without a word."""
    wrong = [
        {"type": "extra_forbidden", "loc": ("query", name)}
        for name in request.query_params
        if name not in known
    ]
    if wrong:
        raise RequestValidationError(wrong)


def _is_json(request: Request) -> bool:
    said = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    empty = said == "" and request.headers.get("content-length", "0") == "0"
    return empty or said == "application/json" or (said.startswith("application/") and said.endswith("+json"))
