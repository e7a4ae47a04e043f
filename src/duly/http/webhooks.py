"""Webhooks of the org: made, changed, disabled, given another secret."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import After, Because, Limit, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.webhook_shapes import (
    NewWebhook,
    SecretRotation,
    WebhookChange,
    WebhookMade,
    WebhookShown,
    WebhooksShown,
)
from duly.model.access import Scope
from duly.store.endpoints import Endpoint
from duly.webhooks.endpoints import NewSecret


def routes(service: Service) -> APIRouter:
    """Seen by those who look after the org's jobs, changed by those who look after the org."""
    api = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictRoute)
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    administers = Annotated[Caller, service.allows(Scope.ADMIN)]
    webhooks, refusals = service.webhooks, documented(404, 413, 415)

    @api.get("", response_model=WebhooksShown, responses=documented())
    async def list_webhooks(who: operates, limit: Limit = 50, after: After = None) -> Response:
        """The endpoints of the org, also those that are disabled."""
        page = await webhooks.list(who.org_id, limit=limit, after=after)
        return as_json(WebhooksShown.model_validate(page))

    @api.post("", status_code=201, response_model=WebhookMade, responses=documented(409, 413, 415))
    async def create(request: NewWebhook, who: administers) -> Response:
        """Tell an endpoint of events that happen from now on; the answer has its secret, this once."""
        await service.check_everything(who)
        made = await webhooks.create(who.org_id, actor=who.actor, **dict(request))
        return _made(made, 201, who.link(f"/v1/webhooks/{made.endpoint.endpoint_id}"))

    @api.get("/{endpoint_id}", response_model=WebhookShown, responses=documented(404))
    async def show(endpoint_id: UUID, who: operates) -> Response:
        """One endpoint."""
        return _shown(await webhooks.get(who.org_id, endpoint_id))

    @api.patch("/{endpoint_id}", response_model=WebhookShown, responses=refusals)
    async def change(endpoint_id: UUID, request: WebhookChange, who: administers) -> Response:
        """Change a part of it. What waits to be sent goes to the new address."""
        await service.check_everything(who)
        return _shown(await webhooks.change(who.org_id, endpoint_id, actor=who.actor, **dict(request)))

    @api.delete("/{endpoint_id}", status_code=204, response_class=Response, responses=documented(404))
    async def remove(endpoint_id: UUID, reason: Because, who: administers) -> Response:
        """End it. What was still to be sent there is not sent."""
        await webhooks.remove(who.org_id, endpoint_id, actor=who.actor, reason=reason)
        return Response(status_code=204)

    @api.post("/{endpoint_id}/disable", response_model=WebhookShown, responses=refusals)
    async def disable(endpoint_id: UUID, request: Why, who: administers) -> Response:
        """Send nothing there until it is enabled. Asked again, it changes nothing."""
        return _shown(await webhooks.disable(who.org_id, endpoint_id, actor=who.actor, reason=request.reason))

    @api.post("/{endpoint_id}/enable", response_model=WebhookShown, responses=refusals)
    async def enable(endpoint_id: UUID, request: Why, who: administers) -> Response:
        """Send there again: what waits, and what happens from now on. Asked again, it changes nothing."""
        await service.check_everything(who)
        return _shown(await webhooks.enable(who.org_id, endpoint_id, actor=who.actor, reason=request.reason))

    @api.post("/{endpoint_id}/rotate", response_model=WebhookMade, responses=documented(404, 409, 413, 415))
    async def rotate(endpoint_id: UUID, request: SecretRotation, who: administers) -> Response:
        """Sign with a new secret at once; the old one signs beside it until the overlap is over."""
        made = await webhooks.rotate_secret(
            who.org_id,
            endpoint_id,
            overlap=timedelta(seconds=request.overlap_seconds),
            secret=request.secret,
            actor=who.actor,
            reason=request.reason,
        )
        return _made(made)

    return api


def _shown(endpoint: Endpoint) -> Response:
    return as_json(WebhookShown.model_validate(endpoint))


def _made(made: NewSecret, status: int = 200, place: str | None = None) -> Response:
    """The only answers that have a secret."""
    said = WebhookMade(**WebhookShown.model_validate(made.endpoint).model_dump(), secret=made.secret)
    headers = {"cache-control": "no-store"} | ({} if place is None else {"location": place})
    return as_json(said, status, headers)
