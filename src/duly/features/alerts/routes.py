"""Routes of alerts, of the org and of the installation."""

from typing import Annotated

from fastapi import APIRouter, Query

from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from duly.features.alerts.models import Alert, AlertKind, AlertPage
from duly.http.params import After, PageSize
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute

IncludeResolved = Annotated[bool, Query(alias="all", description="Include resolved alerts.")]
AlertPageResponse = page_model(
    "alerts",
    response_model(Alert, descriptions={"target": "A queue, a job, an endpoint, or `installation`."}),
)


def routes(service: Service) -> APIRouter:
    """Return the routes of alerts. They are read-only: an alert resolves when its cause is gone."""
    api = APIRouter(prefix="/v1", route_class=StrictRoute)
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    runs = Annotated[Requester, service.allows(Scope.PLATFORM)]

    @api.get("/alerts", tags=["alerts"], response_model=AlertPageResponse, responses=problem_responses())
    async def alerts(
        requester: operates,
        include_resolved: IncludeResolved = False,
        kind: AlertKind | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> AlertPage:
        """List the alerts of the org, newest first: dead letters, and webhooks that fail."""
        await service.check_everything(requester)
        return await service.alerts.list(
            requester.org_id, everything=include_resolved, kind=kind, limit=limit, after=after
        )

    @api.get(
        "/platform/alerts", tags=["platform"], response_model=AlertPageResponse, responses=problem_responses()
    )
    async def platform_alerts(
        requester: runs,
        include_resolved: IncludeResolved = False,
        kind: AlertKind | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> AlertPage:
        """List the alerts of the installation, newest first."""
        return await service.alerts.list(
            SYSTEM_ORG, everything=include_resolved, kind=kind, limit=limit, after=after
        )

    return api
