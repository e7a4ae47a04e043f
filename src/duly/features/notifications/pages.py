"""Notifications: the delivery log of the org, sending again what failed, and whom nothing is sent to."""

from __future__ import annotations

import json

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import Page, Visit, as_id
from duly.core.principal import Scope
from duly.core.redaction import redact
from duly.features.notifications.recipients import WEBHOOK, Recipient, masked
from duly.features.notifications.service import DeliveryStatus, Notification

_AT_A_TIME = 50
LOOKS = {"sent": "completed", "pending": "queued", "suppressed": "canceled", "failed": "failed"}
"""The chip of each status."""
_AGAIN = (DeliveryStatus.FAILED, DeliveryStatus.SUPPRESSED)


async def listed(visit: Visit) -> Page:
    """The delivery log, the newest first."""
    await visit.service.check_everything(visit.caller)
    asked = {name: visit.query.get(name) or None for name in ("status", "channel", "job_id")}
    after = visit.query.get("after")
    page = await visit.service.notifications.list(visit.org_id, limit=_AT_A_TIME, after=after, **asked)
    return visit.page(
        "notifications.html",
        title=visit.t("notifications.title"),
        asked=asked,
        statuses=[*DeliveryStatus],
        rows=[(one, LOOKS[one.delivery_status], to(one)) for one in page.notifications],
        short=page.after is not None and len(page.notifications) < _AT_A_TIME,
        after=page.after,
        first=after is None,
    )


async def shown(visit: Visit) -> Page:
    """One notification."""
    await visit.service.check_everything(visit.caller)
    one = await visit.service.notifications.show(visit.org_id, as_id(visit.params["notification_id"]))
    return visit.page(
        "notification.html",
        title=one.template_key,
        told=one,
        look=LOOKS[one.delivery_status],
        to=to(one),
        again=one.delivery_status in _AGAIN,
        by_job=one.delivery_job_id if one.channel != WEBHOOK else None,
        payload=redact(json.dumps(one.payload, indent=2, ensure_ascii=False)),
    )


async def resend(visit: Visit, form: Form) -> Response:
    """Have it told again."""
    await visit.service.check_everything(visit.caller, "change")
    which = as_id(visit.params["notification_id"])
    told = visit.service.notifications
    await told.resend(visit.org_id, which, actor=visit.actor, reason=form.reason)
    return visit.done("notifications.resent", to=f"/notifications/{which}")


async def suppressions(visit: Visit) -> Page:
    """Whom nothing is sent to."""
    after = visit.query.get("after")
    page = await visit.service.notifications.suppressions.list(visit.org_id, limit=_AT_A_TIME, after=after)
    return visit.page(
        "suppressions.html",
        title=visit.t("notifications.suppressions"),
        rows=page.suppressions,
        after=page.after,
        first=after is None,
    )


async def suppress(visit: Visit, form: Form) -> Response:
    """Send nothing to somebody any more."""
    whom = Recipient.read(form.text("to"))
    rules = visit.service.notifications.suppressions
    await rules.add(visit.org_id, whom, actor=visit.actor, reason=form.reason)
    return visit.done("notifications.suppressed", to="/notifications/suppressions")


async def unsuppress(visit: Visit, form: Form) -> Response:
    """Send to them again."""
    whom = Recipient.read(form.text("to"))
    rules = visit.service.notifications.suppressions
    await rules.remove(visit.org_id, whom, actor=visit.actor, reason=form.reason)
    return visit.done("notifications.unsuppressed", to="/notifications/suppressions")


def to(one: Notification) -> str:
    """Whom it is for: an address is veiled, for a screen is seen by many."""
    return masked(one.channel, one.recipient)


ROUTES = (
    Show("/notifications", listed, Scope.OPERATE, nav="notifications.title"),
    Show("/notifications/suppressions", suppressions, Scope.ADMIN),
    Act("/notifications/suppressions", suppress, Scope.ADMIN, suppressions),
    Act("/notifications/suppressions/end", unsuppress, Scope.ADMIN, suppressions),
    Show("/notifications/{notification_id}", shown, Scope.OPERATE),
    Act("/notifications/{notification_id}/resend", resend, Scope.OPERATE, shown),
)
