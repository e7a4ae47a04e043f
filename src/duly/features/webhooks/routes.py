"""Routes of webhooks: endpoints, their secrets, and the log of deliveries."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from duly.core.principal import Scope
from duly.features.webhooks.deliveries import MAX_RESENT
from duly.features.webhooks.models import (
    Delivery,
    DeliveryPage,
    DeliveryStatus,
    Endpoint,
    EndpointPage,
    NewSecret,
    Resent,
)
from duly.features.webhooks.service import EVENT_TYPES, MAX_JOB_TYPES
from duly.http.params import NUMERIC, After, PageSize, ReasonBody, ReasonParam, Timestamp
from duly.http.problems import problem_responses
from duly.http.requester import Requester
from duly.http.responses import json_response, page_model, response_model
from duly.http.service import Service
from duly.http.strict_requests import StrictRoute, combine_routers

_DAY_SECONDS = 24 * 60 * 60
MessageId = Annotated[str, Path(pattern="^(evt|msg)_[0-9a-f]{32}_[1-9][0-9]{0,8}$")]
EventType = Annotated[str | None, Query(min_length=1, max_length=200)]
Url = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="An https URL of a public host, without user, password and fragment.",
        examples=["https://example.com/hooks/duly"],
    ),
]
EventTypes = Annotated[
    list[Annotated[str, Field(json_schema_extra={"enum": [*EVENT_TYPES]})]],
    Field(
        min_length=1,
        max_length=len(EVENT_TYPES),
        description="A wildcard includes every type but `job.progressed`, which must be named.",
    ),
]
JobTypes = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=200)]],
    Field(max_length=MAX_JOB_TYPES, description="Only events of jobs of these types; empty means all."),
]
Description = Annotated[str, Field(max_length=500)]
Secret = Annotated[
    str,
    Field(
        pattern="^whsec_[A-Za-z0-9+/]{32,86}={0,2}$",
        description="The secret that the receiver has already: 24 to 64 bytes in base64. Default: a new one.",
    ),
]


class NewWebhook(ReasonBody):
    """An endpoint that receives events from now on."""

    url: Url = Field(repr=False)
    event_types: EventTypes
    job_types: JobTypes = Field(default=[])
    description: Description = ""
    secret: Secret | None = Field(default=None, repr=False)


class WebhookUpdate(ReasonBody):
    """The changed fields of an endpoint; the others stay as they are."""

    url: Url | None = Field(default=None, repr=False)
    event_types: EventTypes | None = None
    job_types: JobTypes | None = None
    description: Description | None = None


class SecretRotation(ReasonBody):
    """The new secret, and how long the old one signs beside it."""

    overlap_seconds: Annotated[int, Field(ge=0, le=90 * _DAY_SECONDS), NUMERIC] = _DAY_SECONDS
    secret: Secret | None = Field(default=None, repr=False)


class ResendFailed(ReasonBody):
    """The failed deliveries to resend, oldest first."""

    since: Timestamp = Field(description="Deliveries that were created since then.")
    limit: Annotated[int, Field(ge=1, le=MAX_RESENT), NUMERIC] = MAX_RESENT


_DESCRIPTIONS = {"job_types": "Only events of jobs of these types; null means all."}
WebhookResponse = response_model(Endpoint, "Webhook", descriptions=_DESCRIPTIONS)
WebhookSecretResponse = response_model(
    WebhookResponse, "WebhookWithSecret", secret=(str, "The new secret; no other response contains it.")
)
WebhookPage = page_model("endpoints", WebhookResponse)
DeliveryResponse = response_model(
    Delivery,
    include=(
        *("event_type", "event_seq", "notification_id", "status", "tries", "try_log", "due_at"),
        *("created_at", "ended_at"),
    ),
    descriptions={"due_at": "The time of the next attempt; of an ended delivery, of the last one."},
    message_id=(str, "The `webhook-id` header, and `id` of the message."),
    job_id=(
        UUID | None,
        Field(validation_alias="event_job_id", description="The job; null for a test or a notification."),
    ),
)
DeliveryPageResponse = page_model("deliveries", DeliveryResponse)
ResentResponse = response_model(Resent)


def routes(service: Service) -> APIRouter:
    """Return the routes of webhooks."""
    return combine_routers(_endpoint_routes(service), _delivery_routes(service))


def _endpoint_routes(service: Service) -> APIRouter:
    """Return the routes of endpoints: operators read them, administrators change them."""
    api = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=StrictRoute)
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    administers = Annotated[Requester, service.allows(Scope.ADMIN)]
    webhooks, refusals = service.webhooks, problem_responses(404, 413, 415)

    @api.get("", response_model=WebhookPage, responses=problem_responses())
    async def list_webhooks(requester: operates, limit: PageSize = 50, after: After = None) -> EndpointPage:
        """List the webhooks of the org, including disabled ones."""
        return await webhooks.list(requester.org_id, limit=limit, after=after)

    @api.post(
        "", status_code=201, response_model=WebhookSecretResponse, responses=problem_responses(409, 413, 415)
    )
    async def create(request: NewWebhook, requester: administers) -> Response:
        """Create a webhook for events from now on. Only this response contains its secret."""
        await service.check_everything(requester)
        created = await webhooks.create(requester.org_id, actor=requester.actor, **dict(request))
        location = requester.link(f"/v1/webhooks/{created.endpoint.endpoint_id}")
        return _secret_response(created, 201, {"location": location})

    @api.get("/{endpoint_id}", response_model=WebhookResponse, responses=problem_responses(404))
    async def show(endpoint_id: UUID, requester: operates) -> Endpoint:
        """Get a webhook."""
        return await webhooks.get(requester.org_id, endpoint_id)

    @api.patch("/{endpoint_id}", response_model=WebhookResponse, responses=refusals)
    async def change(endpoint_id: UUID, request: WebhookUpdate, requester: administers) -> Endpoint:
        """Update a webhook. Pending deliveries go to its new URL."""
        await service.check_everything(requester)
        return await webhooks.change(requester.org_id, endpoint_id, actor=requester.actor, **dict(request))

    @api.delete("/{endpoint_id}", status_code=204, response_class=Response, responses=problem_responses(404))
    async def remove(endpoint_id: UUID, reason: ReasonParam, requester: administers) -> None:
        """Delete a webhook. Its pending deliveries are dropped."""
        await webhooks.remove(requester.org_id, endpoint_id, actor=requester.actor, reason=reason)

    @api.post("/{endpoint_id}/disable", response_model=WebhookResponse, responses=refusals)
    async def disable(endpoint_id: UUID, request: ReasonBody, requester: administers) -> Endpoint:
        """Disable a webhook: nothing is sent until it is enabled. Idempotent."""
        return await webhooks.disable(requester.org_id, endpoint_id, actor=requester.actor, **dict(request))

    @api.post("/{endpoint_id}/enable", response_model=WebhookResponse, responses=refusals)
    async def enable(endpoint_id: UUID, request: ReasonBody, requester: administers) -> Endpoint:
        """Enable a webhook: pending deliveries and new events are sent. Idempotent."""
        await service.check_everything(requester)
        return await webhooks.enable(requester.org_id, endpoint_id, actor=requester.actor, **dict(request))

    @api.post(
        "/{endpoint_id}/rotate",
        response_model=WebhookSecretResponse,
        responses=problem_responses(404, 409, 413, 415),
    )
    async def rotate(endpoint_id: UUID, request: SecretRotation, requester: administers) -> Response:
        """Rotate the secret. The new one signs at once, the old one beside it until the overlap ends."""
        rotated = await webhooks.rotate_secret(
            requester.org_id,
            endpoint_id,
            overlap=timedelta(seconds=request.overlap_seconds),
            secret=request.secret,
            actor=requester.actor,
            reason=request.reason,
        )
        return _secret_response(rotated)

    return api


def _delivery_routes(service: Service) -> APIRouter:
    """Return the routes of the log of deliveries."""
    api = APIRouter(prefix="/v1/webhooks/{endpoint_id}", tags=["webhooks"], route_class=StrictRoute)
    operates = Annotated[Requester, service.allows(Scope.OPERATE)]
    log, conflicts = service.webhooks.deliveries, problem_responses(404, 409, 413, 415)

    @api.post("/test", status_code=202, response_model=DeliveryResponse, responses=conflicts)
    async def test(endpoint_id: UUID, request: ReasonBody, requester: operates) -> Delivery:
        """Send a `webhook.test` message, whatever event types the webhook has."""
        return await log.test(requester.org_id, endpoint_id, actor=requester.actor, reason=request.reason)

    @api.get("/deliveries", response_model=DeliveryPageResponse, responses=problem_responses(404))
    async def deliveries(
        endpoint_id: UUID,
        requester: operates,
        status: DeliveryStatus | None = None,
        event_type: EventType = None,
        job_id: UUID | None = None,
        limit: PageSize = 50,
        after: After = None,
    ) -> DeliveryPage:
        """List the deliveries of a webhook with their attempts, newest first. Retained as long as events.

        A filter by status or type scans a bounded number of deliveries: a page may be short or empty
        although more pages follow.
        """
        await service.check_everything(requester)
        return await log.list(
            requester.org_id,
            endpoint_id,
            status=status,
            event_type=event_type,
            job_id=job_id,
            limit=limit,
            after=after,
        )

    @api.get(
        "/deliveries/{message_id}",
        response_model=DeliveryResponse,
        responses=problem_responses(404),
    )
    async def delivery(endpoint_id: UUID, message_id: MessageId, requester: operates) -> Delivery:
        """Get a delivery by the id of its message."""
        await service.check_everything(requester)
        return await log.get(requester.org_id, endpoint_id, message_id)

    @api.post(
        "/deliveries/{message_id}/resend",
        status_code=202,
        response_model=DeliveryResponse,
        responses=conflicts,
    )
    async def resend(
        endpoint_id: UUID, message_id: MessageId, request: ReasonBody, requester: operates
    ) -> Delivery:
        """Resend a message at once, whether it was delivered or not."""
        await service.check_everything(requester, "change")
        return await log.resend(
            requester.org_id, endpoint_id, message_id, actor=requester.actor, **dict(request)
        )

    @api.post("/resend-failed", status_code=202, response_model=ResentResponse, responses=conflicts)
    async def resend_failed(endpoint_id: UUID, request: ResendFailed, requester: operates) -> Resent:
        """Resend failed deliveries, oldest first, up to 1,000 per request."""
        await service.check_everything(requester, "change")
        return await log.resend_failed(requester.org_id, endpoint_id, actor=requester.actor, **dict(request))

    return api


def _secret_response(
    created: NewSecret, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    body = WebhookSecretResponse.model_validate({**dict(created.endpoint), "secret": created.secret})
    return json_response(body, status, {"cache-control": "no-store", **(headers or {})})
