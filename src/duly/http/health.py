"""Whether this process lives, whether it can serve, what it has counted. Nobody has to log in for these."""

import asyncio
import time
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.service import Service
from duly.model.errors import DulyError
from duly.observe import exposition, metrics


class Health(BaseModel):
    """How it is."""

    status: str = Field(description="`ok`, or `unavailable`.")
    reasons: list[str] = Field(default=[], description="Why not.")


_A_MOMENT = 0.005
_FRESH = 1.0
_ANYBODY: dict[str, Any] = {"security": []}


def routes(service: Service) -> APIRouter:
    """For those who look after processes."""
    api = APIRouter(tags=["health"])
    lately = _Lately(service)

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
        "/healthz",
        response_model=Health,
        responses={503: {"model": Health, "description": "Somebody should look."}},
        openapi_extra=_ANYBODY,
    )
    async def healthy() -> Response:
        """If the installation works: the database answers, workers live, and no critical alert is open.

        For those who watch the installation; the answer may be a second old. A process that can serve is
        ready, whether anybody works or not.
        """
        reasons = await lately.reasons()
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
        """What was counted, and what the database says, for Prometheus; no org and no id is in it."""
        await service.figures.refresh()
        await _look_around(service)
        # Many series take a while to write down, and of several processes there are files to read.
        told = await asyncio.to_thread(exposition.text, service.figures)
        return Response(told, media_type=exposition.CONTENT_TYPE)

    return api


class _Lately:
    """What is wrong with the installation, asked once a second at most, however many want to know."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._asking = asyncio.Lock()
        self._reasons: list[str] = []
        self._until = 0.0

    async def reasons(self) -> list[str]:
        async with self._asking:
            if time.monotonic() >= self._until:
                self._reasons = await _reasons(self._service) or await _ills(self._service)
                self._until = time.monotonic() + _FRESH
        return self._reasons


async def _look_around(service: Service) -> None:
    metrics.lagged(await metrics.late_by(_A_MOMENT))
    with suppress(DulyError):
        metrics.pooled("app", **(await service.app.ground()).database.use._asdict())


async def _ills(service: Service) -> list[str]:
    """The kinds of what is wrong, and no more: everybody can ask."""
    try:
        return [kind.value for kind in await service.alerts.unwell(service.options.no_worker)]
    except DulyError as error:
        return [error.code]


async def _reasons(service: Service) -> list[str]:
    try:
        async with (await service.app.ground()).database.engine_session() as conn:
            await conn.execute("select 1")
    except DulyError as error:
        # The code and no more: the text may name hosts, and everybody can ask.
        return [error.code]
    return []
