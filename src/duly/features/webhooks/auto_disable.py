"""Endpoints that nothing reaches any more are disabled, and those who look after them are told."""

from __future__ import annotations

import logging
from datetime import timedelta
from urllib.parse import urlsplit

from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.audit.entries import ChangeRequest
from duly.features.members.service import list_admins
from duly.features.notifications import store as notifications
from duly.features.notifications.store import NewNotification
from duly.features.webhooks import store as endpoints
from duly.features.webhooks.changes import note
from duly.features.webhooks.delivery_store import Judged
from duly.features.webhooks.store import Endpoint

log = logging.getLogger("duly.webhooks")
_DULY = Actor.system("duly")
_MOST_TOLD = 100


async def give_up(conn: Connection, judged: Judged, patience: timedelta) -> None:
    """Disable an endpoint in the transaction that found it out: audited, and its org's admins are told."""
    endpoint = await endpoints.lock(conn, judged.org_id, judged.endpoint_id)
    if endpoint is None or endpoint.disabled_at is not None:
        return
    reason = "the receiver is gone (410)" if judged.gone else f"nothing has arrived for {_days(patience)}"
    who = ChangeRequest(_DULY, reason)
    disabled = await endpoints.disable(conn, endpoint, by=who.by, reason=reason)
    await note(conn, disabled, "disabled", who, failures=disabled.failures)
    await _tell(conn, disabled, who)
    log.warning("webhook %s of org %s is disabled: %s", endpoint.endpoint_id, endpoint.org_id, reason)


async def _tell(conn: Connection, endpoint: Endpoint, who: ChangeRequest) -> None:
    admins = await list_admins(conn, endpoint.org_id, limit=_MOST_TOLD)
    # Only where it is: the rest of an address may be as good as a password there.
    said = {
        "endpoint_id": str(endpoint.endpoint_id),
        "url": f"https://{urlsplit(endpoint.url).hostname}",
        "reason": who.reason,
        "disabled_at": endpoint.disabled_at and endpoint.disabled_at.isoformat(),
    }
    told = [
        NewNotification(endpoint.org_id, "in_app", admin, "webhook.disabled", said, who.by)
        for admin in admins
    ]
    await notifications.add(conn, told)


def _days(patience: timedelta) -> str:
    days = round(patience / timedelta(days=1), 1)
    return f"{days:g} days" if days >= 1 else f"{patience}"
