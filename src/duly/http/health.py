"""Health of the process and the installation, and metrics; none of these needs a credential."""

import asyncio
import time
from contextlib import suppress
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, Field
from starlette.responses import Response

from duly.core.errors import DulyError
from duly.http.responses import json_response
from duly.http.service import Service
from duly.observability import exposition, metrics

_LAG_SAMPLE_SECONDS = 0.005
_CACHE_TTL = 1.0
_PUBLIC: dict[str, Any] = {"security": []}


class Health(BaseModel):
    """The state of a process or of the installation."""

    status: str = Field(description="`ok` or `unavailable`.")
    reasons: list[str] = Field(default=[], description="What is wrong.")


def routes(service: Service) -> APIRouter:
    """Return the routes for monitoring."""
    api = APIRouter(tags=["health"])
    installation = _InstallationHealth(service)

    @api.get("/livez", response_model=Health, openapi_extra=_PUBLIC)
    async def alive() -> Response:
        """Report that the process runs."""
        return _response([])

    @api.get(
        "/readyz",
        response_model=Health,
        responses={503: {"model": Health, "description": "Not ready."}},
        openapi_extra=_PUBLIC,
    )
    async def ready() -> Response:
        """Report whether the database answers and has the schema of this version."""
        return _response(await _database_problems(service))

    @api.get(
        "/healthz",
        response_model=Health,
        responses={503: {"model": Health, "description": "Needs attention."}},
        openapi_extra=_PUBLIC,
    )
    async def healthy() -> Response:
        """Report whether the database answers, workers are alive and no critical alert is open.

        For monitoring of the installation; the answer may be one second old. A process is ready whether
        workers are alive or not.
        """
        return _response(await installation.problems())

    @api.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
        openapi_extra=_PUBLIC,
    )
    async def metrics() -> Response:
        """Export the metrics of the process and of the database for Prometheus; without orgs and ids."""
        await service.metrics.refresh()
        await _sample_process(service)
        # Many series take a while to format, and those of several processes are read from files.
        text = await asyncio.to_thread(exposition.render, service.metrics)
        return Response(text, media_type=exposition.CONTENT_TYPE)

    return api


def _response(problems: list[str]) -> Response:
    health = Health(status="unavailable" if problems else "ok", reasons=problems)
    return json_response(health, 503 if problems else 200)


class _InstallationHealth:
    """Problems of the installation, looked up once a second at most, however many clients ask."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = asyncio.Lock()
        self._problems: list[str] = []
        self._until = 0.0

    async def problems(self) -> list[str]:
        async with self._lock:
            if time.monotonic() >= self._until:
                self._problems = await _database_problems(self._service) or await _open_alerts(self._service)
                self._until = time.monotonic() + _CACHE_TTL
        return self._problems


async def _sample_process(service: Service) -> None:
    metrics.set_loop_lag(await metrics.measure_lag(_LAG_SAMPLE_SECONDS))
    with suppress(DulyError):
        metrics.set_pool_usage("app", **(await service.app.resources()).database.usage._asdict())


async def _open_alerts(service: Service) -> list[str]:
    """Return the kinds of critical alerts, and no more: the route is public."""
    try:
        return [kind.value for kind in await service.alerts.critical_kinds(service.options.no_worker)]
    except DulyError as error:
        return [error.code]


async def _database_problems(service: Service) -> list[str]:
    try:
        async with (await service.app.resources()).database.engine() as conn:
            await conn.execute("select 1")
    except DulyError as error:
        # The code and no more: the text may name hosts, and the route is public.
        return [error.code]
    return []
