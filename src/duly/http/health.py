"""Whether this process lives, whether it can serve, what it has counted. Nobody has to log in for these."""

from typing import Any

from fastapi import APIRouter
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.service import Service
from duly.model.errors import DulyError


class Health(BaseModel):
    """How it is."""

    status: str = Field(description="`ok`, or `unavailable`.")
    reasons: list[str] = Field(default=[], description="Why not.")


_ANYBODY: dict[str, Any] = {"security": []}


def routes(service: Service) -> APIRouter:
    """For those who look after processes."""
    api = APIRouter(tags=["health"])

    @api.get("/livez", response_model=Health, openapi_extra=_ANYBODY)
    async def alive() -> Response:
        """Always, while the process runs."""
        return as_json(Health(status="ok"))

    @api.get(
        "/readyz",
        response_model=Health,
        responses={503: {"model": Health, "description": "Not now."}},
        openapi_extra=_ANYBODY,
    )
    async def ready() -> Response:
        """If the database answers and has the schema of this version."""
        reasons = await _reasons(service)
        return as_json(
            Health(status="unavailable" if reasons else "ok", reasons=reasons), 503 if reasons else 200
        )

    @api.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        openapi_extra=_ANYBODY,
    )
    async def metrics() -> Response:
        """What this process has counted, for Prometheus; no org and no id is in it."""
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return api


async def _reasons(service: Service) -> list[str]:
    try:
        async with (await service.app.ground()).database.engine_session() as conn:
            await conn.execute("select 1")
    except DulyError as error:
        # The code and no more: the text may name hosts, and everybody can ask.
        return [error.code]
    return []
