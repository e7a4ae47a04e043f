"""Preferences and suppressions of recipients. Both are checked when a notification is due."""

from __future__ import annotations

import builtins
from typing import Any
from uuid import UUID

from duly.core.errors import LimitExceeded
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import org_uuid
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.notifications import store
from duly.features.notifications.models import Preference, Suppression, SuppressionPage
from duly.features.notifications.recipient import Recipient, mask_recipient
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, read_org_page, text_pair_cursor
from duly.features.templates.models import checked_template_key
from duly.jobs.application import App

MAX_PREFERENCES_PER_RECIPIENT = 100


class Preferences:
    """The templates that recipients want. Without a preference, a recipient gets all."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def of(self, org_id: UUID | str, recipient: Recipient | str) -> builtins.list[Preference]:
        """Return the preferences of a recipient by template; the empty key stands for all other templates."""
        org, key = org_uuid(org_id), _recipient_key(org_id, recipient)
        async with self._app.tenant_session(org) as conn:
            return await store.list_preferences(conn, key)

    async def set(
        self,
        org_id: UUID | str,
        recipient: Recipient | str,
        *,
        wanted: bool | None,
        template_key: str = "",
        actor: Actor,
    ) -> builtins.list[Preference]:
        """Set whether a recipient wants a template, or without a key all others; None removes it."""
        org, key = org_uuid(org_id), _recipient_key(org_id, recipient)
        values = {
            **key,
            "template_key": checked_template_key(template_key) if template_key else "",
            "wanted": wanted,
            "updated_by": change_request(actor, None, optional=True).by,
        }

        async def change(conn: Connection) -> builtins.list[Preference]:
            await lock_org(conn, org)
            await store.set_preference(conn, values)
            preferences = await store.list_preferences(conn, key)
            if len(preferences) > MAX_PREFERENCES_PER_RECIPIENT:
                raise LimitExceeded(
                    f"the recipient has {MAX_PREFERENCES_PER_RECIPIENT} preferences",
                    field="template_key",
                    fix="remove some with wanted=None",
                )
            return preferences

        return await audited_transaction(self._app, change)


class Suppressions:
    """Recipients that get no notifications at all: bounced addresses, people who left."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> SuppressionPage:
        """Return the suppressed recipients of an org; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, text_pair_cursor) or ("", "")
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_suppressions(conn, org, start, limit=count),
            lambda last: (last.channel, last.recipient),
            limit=limit,
        )
        return SuppressionPage(*page)

    async def add(
        self, org_id: UUID | str, recipient: Recipient | str, *, actor: Actor, reason: str
    ) -> Suppression:
        """Suppress a recipient. Idempotent."""
        org, request = org_uuid(org_id), change_request(actor, reason)
        key = _recipient_key(org_id, recipient)

        async def change(conn: Connection) -> Suppression:
            await lock_org(conn, org)
            added = await store.add_suppression(conn, {**key, "reason": reason, "created_by": request.by})
            if added is not None:
                target = mask_recipient(added.channel, added.recipient)
                await record_entry(conn, request, org, "suppression.added", target)
            suppression = added or await store.read_suppression(conn, key)
            assert suppression is not None  # the org is locked
            return suppression

        return await audited_transaction(self._app, change)

    async def remove(
        self, org_id: UUID | str, recipient: Recipient | str, *, actor: Actor, reason: str
    ) -> bool:
        """End the suppression of a recipient; return whether there was one."""
        org, request = org_uuid(org_id), change_request(actor, reason)
        key = _recipient_key(org_id, recipient)

        async def change(conn: Connection) -> bool:
            await lock_org(conn, org)
            removed = await store.remove_suppression(conn, key)
            if removed is not None:
                target = mask_recipient(removed.channel, removed.recipient)
                await record_entry(conn, request, org, "suppression.removed", target, was=removed.reason)
            return removed is not None

        return await audited_transaction(self._app, change)


def _recipient_key(org_id: UUID | str, recipient: Recipient | str) -> dict[str, Any]:
    channel, address = Recipient.parse(recipient)
    return {"org_id": org_uuid(org_id), "channel": channel, "recipient": address}
