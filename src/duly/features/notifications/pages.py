"""The console pages of notifications: the delivery log, resending, and suppressed recipients."""

from __future__ import annotations

import json

from starlette.responses import Response

from duly.console.form import Form
from duly.console.routing import Act, Show
from duly.console.visit import ConsolePage, Visit, as_id
from duly.core.principal import Scope
from duly.core.redaction import redact
from duly.features.notifications.models import DeliveryStatus, Notification
from duly.features.notifications.recipient import WEBHOOK, Recipient, mask_recipient

_PAGE_SIZE = 50
_CHIPS = {"sent": "completed", "pending": "queued", "suppressed": "canceled", "failed": "failed"}
"""The state of the chip, by delivery status."""
_RESENDABLE = (DeliveryStatus.FAILED, DeliveryStatus.SUPPRESSED)


async def notifications_page(visit: Visit) -> ConsolePage:
    """Show the delivery log, newest first."""
    await visit.service.check_everything(visit.requester)
    filters = {name: visit.query.get(name) or None for name in ("status", "channel", "job_id")}
    after = visit.query.get("after")
    page = await visit.service.notifications.list(visit.org_id, limit=_PAGE_SIZE, after=after, **filters)
    return visit.page(
        "notifications.html",
        title=visit.t("notifications.title"),
        filters=filters,
        statuses=[*DeliveryStatus],
        rows=[(one, _CHIPS[one.delivery_status], _masked_recipient(one)) for one in page.notifications],
        short=page.after is not None and len(page.notifications) < _PAGE_SIZE,
        after=page.after,
        first=after is None,
    )


async def notification_page(visit: Visit) -> ConsolePage:
    """Show a notification."""
    await visit.service.check_everything(visit.requester)
    notification_id = as_id(visit.params["notification_id"])
    notification = await visit.service.notifications.show(visit.org_id, notification_id)
    return visit.page(
        "notification.html",
        title=notification.template_key,
        notification=notification,
        chip=_CHIPS[notification.delivery_status],
        recipient=_masked_recipient(notification),
        resendable=notification.delivery_status in _RESENDABLE,
        delivery_job_id=notification.delivery_job_id if notification.channel != WEBHOOK else None,
        payload=redact(json.dumps(notification.payload, indent=2, ensure_ascii=False)),
    )


async def resend(visit: Visit, form: Form) -> Response:
    """Resend a notification."""
    await visit.service.check_everything(visit.requester, "change")
    notification_id = as_id(visit.params["notification_id"])
    await visit.service.notifications.resend(
        visit.org_id, notification_id, actor=visit.actor, reason=form.reason
    )
    return visit.done("notifications.resent", to=f"/notifications/{notification_id}")


async def suppressions_page(visit: Visit) -> ConsolePage:
    """Show the suppressed recipients."""
    after = visit.query.get("after")
    page = await visit.service.notifications.suppressions.list(visit.org_id, limit=_PAGE_SIZE, after=after)
    return visit.page(
        "suppressions.html",
        title=visit.t("notifications.suppressions"),
        rows=page.suppressions,
        after=page.after,
        first=after is None,
    )


async def suppress(visit: Visit, form: Form) -> Response:
    """Suppress a recipient."""
    recipient = Recipient.parse(form.text("to"))
    suppressions = visit.service.notifications.suppressions
    await suppressions.add(visit.org_id, recipient, actor=visit.actor, reason=form.reason)
    return visit.done("notifications.suppressed", to="/notifications/suppressions")


async def unsuppress(visit: Visit, form: Form) -> Response:
    """End the suppression of a recipient."""
    recipient = Recipient.parse(form.text("to"))
    suppressions = visit.service.notifications.suppressions
    await suppressions.remove(visit.org_id, recipient, actor=visit.actor, reason=form.reason)
    return visit.done("notifications.unsuppressed", to="/notifications/suppressions")


def _masked_recipient(notification: Notification) -> str:
    return mask_recipient(notification.channel, notification.recipient)


ROUTES = (
    Show("/notifications", notifications_page, Scope.OPERATE, nav="notifications.title"),
    Show("/notifications/suppressions", suppressions_page, Scope.ADMIN),
    Act("/notifications/suppressions", suppress, Scope.ADMIN, suppressions_page),
    Act("/notifications/suppressions/end", unsuppress, Scope.ADMIN, suppressions_page),
    Show("/notifications/{notification_id}", notification_page, Scope.OPERATE),
    Act("/notifications/{notification_id}/resend", resend, Scope.OPERATE, notification_page),
)
