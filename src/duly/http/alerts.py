"""Alerts: what somebody of an org, or of the installation, should look at."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import After, Limit, Shown
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.model.access import Scope
from duly.model.alerts import Kind, Severity
from duly.model.system import SYSTEM_ORG

Over = Annotated[bool, Query(alias="all", description="Also those that are over.")]


class AlertShown(Shown):
    """What somebody should look at, or should have."""

    alert_id: UUID
    kind: Kind
    target: str = Field(description="What it is about: a queue, a job, an endpoint, or `installation`.")
    severity: Severity
    summary: str
    detail: dict[str, Any]
    measured: float | None
    threshold: float | None
    fired_at: datetime
    seen_at: datetime = Field(description="When it was found to be so for the last time.")
    resolved_at: datetime | None


class AlertsShown(Shown):
    """Some alerts; `after` asks for those that follow, and is null at the end."""

    alerts: list[AlertShown]
    after: str | None


def routes(service: Service) -> APIRouter:
    """To be read: an alert is over when what it is about is."""
    api = APIRouter(route_class=StrictRoute)
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    runs = Annotated[Caller, service.allows(Scope.PLATFORM)]

    @api.get("/v1/alerts", tags=["alerts"], response_model=AlertsShown, responses=documented())
    async def alerts(
        who: operates,
        everything: Over = False,
        kind: Kind | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """The alerts of the org: dead letters, and webhooks that reach nobody; the newest first."""
        await service.check_everything(who)
        page = await service.alerts.list(
            who.org_id, everything=everything, kind=kind, limit=limit, after=after
        )
        return as_json(AlertsShown.model_validate(page))

    @api.get("/v1/platform/alerts", tags=["platform"], response_model=AlertsShown, responses=documented())
    async def platform_alerts(
        who: runs, everything: Over = False, kind: Kind | None = None, limit: Limit = 50, after: After = None
    ) -> Response:
        """The alerts of the installation, the newest first."""
        page = await service.alerts.list(
            SYSTEM_ORG, everything=everything, kind=kind, limit=limit, after=after
        )
        return as_json(AlertsShown.model_validate(page))

    return api
