"""What the webhooks of the org were told, and telling it again."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from duly.http.answers import as_json
from duly.http.caller import Caller
from duly.http.params import After, Limit, Why
from duly.http.problems import documented
from duly.http.service import Service
from duly.http.strict import StrictRoute
from duly.http.webhook_shapes import DeliveriesShown, DeliveryShown, ResendFailed, ResentShown
from duly.model.access import Scope
from duly.store.delivery_log import Delivery, DeliveryStatus

MessageId = Annotated[str, Path(pattern="^(evt|msg)_[0-9a-f]{32}_[1-9][0-9]{0,8}$")]
EventType = Annotated[str | None, Query(min_length=1, max_length=200)]


def routes(service: Service) -> APIRouter:
    """The delivery log, for those who look after the org's jobs."""
    api = APIRouter(prefix="/v1/webhooks/{endpoint_id}", tags=["webhooks"], route_class=StrictRoute)
    operates = Annotated[Caller, service.allows(Scope.OPERATE)]
    log, refusals = service.webhooks.deliveries, documented(404, 409, 413, 415)

    @api.post("/test", status_code=202, response_model=DeliveryShown, responses=refusals)
    async def test(endpoint_id: UUID, request: Why, who: operates) -> Response:
        """Send a message of the kind `webhook.test`, whatever the endpoint wants to be told of."""
        sent = await log.test(who.org_id, endpoint_id, actor=who.actor, reason=request.reason)
        return _message(sent, 202)

    @api.get("/deliveries", response_model=DeliveriesShown, responses=documented(404))
    async def deliveries(
        endpoint_id: UUID,
        who: operates,
        status: DeliveryStatus | None = None,
        event_type: EventType = None,
        job_id: UUID | None = None,
        limit: Limit = 50,
        after: After = None,
    ) -> Response:
        """What the endpoint was told, the newest first, with each try. Kept as long as events.

        With a status or a type so many are looked at and no more: a page may then be short, even empty,
        although others follow.
        """
        await service.check_everything(who)
        page = await log.list(
            who.org_id,
            endpoint_id,
            status=status,
            event_type=event_type,
            job_id=job_id,
            limit=limit,
            after=after,
        )
        return as_json(DeliveriesShown.model_validate(page))

    @api.get("/deliveries/{message_id}", response_model=DeliveryShown, responses=documented(404))
    async def delivery(endpoint_id: UUID, message_id: MessageId, who: operates) -> Response:
        """One message by the id that it was sent with."""
        await service.check_everything(who)
        return _message(await log.get(who.org_id, endpoint_id, message_id))

    @api.post(
        "/deliveries/{message_id}/resend", status_code=202, response_model=DeliveryShown, responses=refusals
    )
    async def resend(endpoint_id: UUID, message_id: MessageId, request: Why, who: operates) -> Response:
        """Send a message again at once, whether it arrived or not."""
        await service.check_everything(who, "change")
        sent = await log.resend(who.org_id, endpoint_id, message_id, actor=who.actor, reason=request.reason)
        return _message(sent, 202)

    @api.post("/resend-failed", status_code=202, response_model=ResentShown, responses=refusals)
    async def resend_failed(endpoint_id: UUID, request: ResendFailed, who: operates) -> Response:
        """Send again what has failed for good, the oldest first, and no more than a thousand at a time."""
        await service.check_everything(who, "change")
        done = await log.resend_failed(who.org_id, endpoint_id, actor=who.actor, **dict(request))
        return as_json(ResentShown.model_validate(done), 202)

    return api


def _message(delivery: Delivery, status: int = 200) -> Response:
    return as_json(DeliveryShown.model_validate(delivery), status)
