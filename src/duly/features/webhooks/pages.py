"""Console pages of webhooks: endpoints with their backlogs, the delivery log, resending."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, get_args
from urllib.parse import urlsplit
from uuid import UUID

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit, as_id
from duly.core.errors import ContractError, NotFound
from duly.core.principal import Scope
from duly.features.webhooks.deliveries import MAX_PENDING, MAX_RESENT
from duly.features.webhooks.models import Delivery, DeliveryStatus, Endpoint

_PAGE_SIZE, _MAX_HOURS = 50, 24 * 90
_STATUS_CHIPS = {"delivered": "completed", "pending": "queued", "failed": "failed"}
"""The chip of each delivery status."""
_STATE_CHIPS = {"disabled": "canceled", "shut": "failed", "failing": "needs_ocr", "enabled": "completed"}


async def list_page(visit: Visit) -> ConsolePage:
    """List the endpoints of the org with their backlogs."""
    webhooks, after = visit.service.webhooks, visit.query.get("after")
    page = await webhooks.list(visit.org_id, limit=_PAGE_SIZE, after=after)
    backlogs = await webhooks.deliveries.backlogs(visit.org_id, page.endpoints)
    return visit.page(
        "webhooks.html",
        title=visit.t("webhooks.title"),
        rows=[(endpoint, _summary(endpoint), backlogs[endpoint.endpoint_id]) for endpoint in page.endpoints],
        max_pending=MAX_PENDING,
        after=page.after,
        first=after is None,
    )


async def endpoint_page(visit: Visit) -> ConsolePage:
    """Show an endpoint and its delivery log."""
    await visit.service.check_everything(visit.requester)
    endpoint_id, after = _endpoint_id(visit), visit.query.get("after")
    log = visit.service.webhooks.deliveries
    only: dict[str, Any] = {name: visit.query.get(name) or None for name in ("status", "event_type")}
    endpoint = await visit.service.webhooks.get(visit.org_id, endpoint_id)
    backlogs = await log.backlogs(visit.org_id, [endpoint])
    page = await log.list(visit.org_id, endpoint_id, limit=_PAGE_SIZE, after=after, **only)
    return visit.page(
        "webhook.html",
        title=_host(endpoint),
        endpoint=endpoint,
        summary=_summary(endpoint),
        backlog=backlogs[endpoint_id],
        max_pending=MAX_PENDING,
        filter=only,
        statuses=get_args(DeliveryStatus),
        rows=[
            (delivery, _STATUS_CHIPS[delivery.status], delivery.try_log[-1] if delivery.try_log else {})
            for delivery in page.deliveries
        ],
        short=page.after is not None and len(page.deliveries) < _PAGE_SIZE,
        after=page.after,
        first=after is None,
        max_resent=MAX_RESENT,
    )


async def delivery_page(visit: Visit) -> ConsolePage:
    """Show a delivery with its attempts."""
    await visit.service.check_everything(visit.requester)
    endpoint = await visit.service.webhooks.get(visit.org_id, _endpoint_id(visit))
    delivery = await _delivery(visit)
    return visit.page(
        "delivery.html",
        title=delivery.event_type,
        endpoint=endpoint,
        host=_host(endpoint),
        delivery=delivery,
        chip=_STATUS_CHIPS[delivery.status],
        attempts=[*reversed(delivery.try_log)],
    )


async def resend(visit: Visit, form: Form) -> Response:
    """Resend a message."""
    await visit.service.check_everything(visit.requester, "change")
    endpoint_id, message_id = _endpoint_id(visit), (await _delivery(visit)).message_id
    log = visit.service.webhooks.deliveries
    await log.resend(visit.org_id, endpoint_id, message_id, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.resent", to=f"/webhooks/{endpoint_id}/messages/{message_id}")


async def resend_failed(visit: Visit, form: Form) -> Response:
    """Resend the failed deliveries of the last hours."""
    await visit.service.check_everything(visit.requester, "change")
    endpoint_id, hours = _endpoint_id(visit), form.number("hours")
    if not 0 < hours <= _MAX_HOURS:
        raise ContractError(f"{hours:g} is out of range", field="hours", fix=f"use 1 to {_MAX_HOURS}")
    resent = await visit.service.webhooks.deliveries.resend_failed(
        visit.org_id,
        endpoint_id,
        since=datetime.now(UTC) - timedelta(hours=hours),
        actor=visit.actor,
        reason=form.reason,
    )
    return visit.done("webhooks.resent_failed", to=f"/webhooks/{endpoint_id}", n=resent.count)


async def test(visit: Visit, form: Form) -> Response:
    """Send a test message."""
    endpoint_id, log = _endpoint_id(visit), visit.service.webhooks.deliveries
    sent = await log.test(visit.org_id, endpoint_id, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.tested", to=f"/webhooks/{endpoint_id}/messages/{sent.message_id}")


async def enable(visit: Visit, form: Form) -> Response:
    """Enable an endpoint."""
    await visit.service.check_everything(visit.requester)
    endpoint_id = _endpoint_id(visit)
    await visit.service.webhooks.enable(visit.org_id, endpoint_id, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.done.enable", to=f"/webhooks/{endpoint_id}")


async def disable(visit: Visit, form: Form) -> Response:
    """Disable an endpoint."""
    endpoint_id = _endpoint_id(visit)
    await visit.service.webhooks.disable(visit.org_id, endpoint_id, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.done.disable", to=f"/webhooks/{endpoint_id}")


def _endpoint_id(visit: Visit) -> UUID:
    return as_id(visit.params["endpoint_id"])


async def _delivery(visit: Visit) -> Delivery:
    try:
        return await visit.service.webhooks.deliveries.get(
            visit.org_id, _endpoint_id(visit), visit.params["message_id"]
        )
    except ContractError:
        raise NotFound("no such message") from None


def _summary(endpoint: Endpoint) -> dict[str, str]:
    """Return the state of an endpoint and its host: some URLs contain a token."""
    is_open = endpoint.shut_until is not None and endpoint.shut_until > datetime.now(UTC)
    failing = "shut" if is_open else "failing" if endpoint.failures else "enabled"
    state = "disabled" if endpoint.disabled_at else failing
    return {"state": state, "chip": _STATE_CHIPS[state], "host": _host(endpoint)}


def _host(endpoint: Endpoint) -> str:
    parts = urlsplit(endpoint.url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/…"


_ENDPOINT, _MESSAGE = "/webhooks/{endpoint_id}", "/webhooks/{endpoint_id}/messages/{message_id}"
ROUTES = (
    Show("/webhooks", list_page, Scope.OPERATE, nav="webhooks.title"),
    Show(_ENDPOINT, endpoint_page, Scope.OPERATE),
    Show(_MESSAGE, delivery_page, Scope.OPERATE),
    Act(f"{_MESSAGE}/resend", resend, Scope.OPERATE, delivery_page),
    Act(f"{_ENDPOINT}/resend-failed", resend_failed, Scope.OPERATE, endpoint_page),
    Act(f"{_ENDPOINT}/test", test, Scope.OPERATE, endpoint_page),
    Act(f"{_ENDPOINT}/enable", enable, Scope.ADMIN, endpoint_page),
    Act(f"{_ENDPOINT}/disable", disable, Scope.ADMIN, endpoint_page),
)
