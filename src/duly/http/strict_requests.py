"""Strict requests: no duplicate keys, NaN or deep nesting in JSON, no unknown query parameters."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, HTTPException
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from duly.core import payload
from duly.core.errors import PayloadRefused

MAX_BODY_FIELDS, MAX_LISTED_FIELDS = 100, 20_000


class _StrictRequest(Request):
    async def json(self) -> Any:
        body = payload.parse_payload(await self.body())
        if isinstance(body, dict) and (
            len(body) > MAX_BODY_FIELDS or _count_listed_fields(body) > MAX_LISTED_FIELDS
        ):
            # Each unknown field would become an error: a small body could keep the process busy for long.
            raise PayloadRefused("too many fields", field="body", fix="send the fields of the schema only")
        return body


def _count_listed_fields(body: dict[str, Any]) -> int:
    items = [item for value in body.values() if isinstance(value, list) for item in value]
    return sum(len(item) if isinstance(item, dict) else 1 for item in items)


class StrictRoute(APIRoute):
    """A route that rejects what it does not know: `APIRouter(route_class=StrictRoute)`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler of the route."""
        handle = super().get_route_handler()
        takes_json = self.body_field is not None
        known = {param.alias for param in self.dependant.query_params}

        async def strict(request: Request) -> Response:
            if request.scope["query_string"]:
                _check_query(request, known)
            if not takes_json:
                return await handle(request)
            if not _is_json(request):
                raise HTTPException(415, "send JSON with `Content-Type: application/json`")
            return await handle(_StrictRequest(request.scope, request.receive))

        return strict


def combine_routers(*routers: APIRouter) -> APIRouter:
    """Return one router with the routes of several, in their order."""
    combined = APIRouter()
    for router in routers:
        combined.routes.extend(router.routes)
    return combined


def _check_query(request: Request, known: set[str]) -> None:
    """Raise for an unknown parameter: FastAPI would ignore a misspelled filter."""
    unknown = [
        {"type": "extra_forbidden", "loc": ("query", name)}
        for name in request.query_params
        if name not in known
    ]
    if unknown:
        raise RequestValidationError(unknown)


def _is_json(request: Request) -> bool:
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "":
        return request.headers.get("content-length", "0") == "0"
    suffixed = content_type.startswith("application/") and content_type.endswith("+json")
    return suffixed or content_type == "application/json"
