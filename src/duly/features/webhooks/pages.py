"""Webhooks: how the endpoints of the org are, what each was told, and telling it again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit, as_id
from duly.core.errors import ContractError, NotFound
from duly.core.principal import Scope
from duly.features.webhooks.deliveries import MOST_RESENT, Delivery
from duly.features.webhooks.service import Endpoint

_AT_A_TIME, _LONGEST_HOURS = 50, 24 * 90
_STATUSES = ("pending", "delivered", "failed")
LOOKS = {"delivered": "completed", "pending": "queued", "failed": "failed"}
"""The chip of each status."""


async def listed(visit: Visit) -> Page:
    """The endpoints, each with what waits for it."""
    after = visit.query.get("after")
    page = await visit.service.webhooks.list(visit.org_id, limit=_AT_A_TIME, after=after)
    waiting = await visit.service.webhooks.deliveries.waiting(visit.org_id, page.endpoints)
    return visit.page(
        "webhooks.html",
        title=visit.t("webhooks.title"),
        rows=[(one, _shown_as(one), waiting[one.endpoint_id]) for one in page.endpoints],
        after=page.after,
        first=after is None,
    )


async def shown(visit: Visit) -> Page:
    """One endpoint, and its delivery log."""
    await visit.service.check_everything(visit.caller)
    which, after = as_id(visit.params["endpoint_id"]), visit.query.get("after")
    log, asked = visit.service.webhooks.deliveries, _asked(visit)
    endpoint = await visit.service.webhooks.get(visit.org_id, which)
    waiting = await log.waiting(visit.org_id, [endpoint])
    page = await log.list(visit.org_id, which, limit=_AT_A_TIME, after=after, **asked)
    return visit.page(
        "webhook.html",
        title=_host(endpoint),
        endpoint=endpoint,
        seen=_shown_as(endpoint),
        waiting=waiting[which],
        asked=asked,
        statuses=_STATUSES,
        rows=[(one, LOOKS[one.status], _last(one)) for one in page.deliveries],
        short=page.after is not None and len(page.deliveries) < _AT_A_TIME,
        after=page.after,
        first=after is None,
        most=MOST_RESENT,
    )


async def message(visit: Visit) -> Page:
    """One message to an endpoint, with its tries."""
    await visit.service.check_everything(visit.caller)
    which = as_id(visit.params["endpoint_id"])
    endpoint = await visit.service.webhooks.get(visit.org_id, which)
    one = await _message(visit)
    return visit.page(
        "delivery.html",
        title=one.event_type,
        endpoint=endpoint,
        host=_host(endpoint),
        told=one,
        look=LOOKS[one.status],
        tries=[*reversed(one.try_log)],
    )


async def resend(visit: Visit, form: Form) -> Response:
    """Send one message again."""
    await visit.service.check_everything(visit.caller, "change")
    which, one = as_id(visit.params["endpoint_id"]), await _message(visit)
    log = visit.service.webhooks.deliveries
    await log.resend(visit.org_id, which, one.message_id, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.resent", to=f"/webhooks/{which}/messages/{one.message_id}")


async def resend_failed(visit: Visit, form: Form) -> Response:
    """Send again what has failed for good."""
    await visit.service.check_everything(visit.caller, "change")
    which, hours = as_id(visit.params["endpoint_id"]), form.number("hours")
    if not 0 < hours <= _LONGEST_HOURS:
        raise ContractError(f"{hours:g} is out of range", field="hours", fix=f"use 1 to {_LONGEST_HOURS}")
    since = datetime.now(UTC) - timedelta(hours=hours)
    log = visit.service.webhooks.deliveries
    done = await log.resend_failed(visit.org_id, which, since=since, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.resent_failed", to=f"/webhooks/{which}", n=done.count)


async def test(visit: Visit, form: Form) -> Response:
    """Send a message that only says that messages arrive."""
    which = as_id(visit.params["endpoint_id"])
    log = visit.service.webhooks.deliveries
    sent = await log.test(visit.org_id, which, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.tested", to=f"/webhooks/{which}/messages/{sent.message_id}")


async def enable(visit: Visit, form: Form) -> Response:
    """Send there again."""
    await visit.service.check_everything(visit.caller)
    which = as_id(visit.params["endpoint_id"])
    await visit.service.webhooks.enable(visit.org_id, which, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.done.enable", to=f"/webhooks/{which}")


async def disable(visit: Visit, form: Form) -> Response:
    """Send nothing there until it is enabled."""
    which = as_id(visit.params["endpoint_id"])
    await visit.service.webhooks.disable(visit.org_id, which, actor=visit.actor, reason=form.reason)
    return visit.done("webhooks.done.disable", to=f"/webhooks/{which}")


def _asked(visit: Visit) -> dict[str, Any]:
    return {name: visit.query.get(name) or None for name in ("status", "event_type")}


def _shown_as(one: Endpoint) -> dict[str, str]:
    """How an endpoint is, in a word, and where: not its whole address, for some have a token in it."""
    shut = one.shut_until is not None and one.shut_until > datetime.now(UTC)
    state = "disabled" if one.disabled_at else "shut" if shut else "failing" if one.failures else "enabled"
    look = {"disabled": "canceled", "shut": "failed", "failing": "needs_ocr", "enabled": "completed"}[state]
    return {"state": state, "look": look, "host": _host(one)}


def _host(one: Endpoint) -> str:
    parts = urlsplit(one.url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}/…"


def _last(one: Delivery) -> dict[str, Any]:
    """The last try of a message."""
    return one.try_log[-1] if one.try_log else {}


async def _message(visit: Visit) -> Delivery:
    which, message_id = as_id(visit.params["endpoint_id"]), visit.params["message_id"]
    try:
        return await visit.service.webhooks.deliveries.get(visit.org_id, which, message_id)
    except ContractError:
        raise NotFound("no such message") from None


_ONE, _MESSAGE = "/webhooks/{endpoint_id}", "/webhooks/{endpoint_id}/messages/{message_id}"
ROUTES = (
    Show("/webhooks", listed, Scope.OPERATE, nav="webhooks.title"),
    Show(_ONE, shown, Scope.OPERATE),
    Show(_MESSAGE, message, Scope.OPERATE),
    Act(f"{_MESSAGE}/resend", resend, Scope.OPERATE, message),
    Act(f"{_ONE}/resend-failed", resend_failed, Scope.OPERATE, shown),
    Act(f"{_ONE}/test", test, Scope.OPERATE, shown),
    Act(f"{_ONE}/enable", enable, Scope.ADMIN, shown),
    Act(f"{_ONE}/disable", disable, Scope.ADMIN, shown),
)
