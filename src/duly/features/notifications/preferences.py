"""What recipients want to hear, and whom nothing is sent to: both are asked when a message is due."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.core.errors import LimitExceeded
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request, record_entry
from duly.features.notifications.recipients import Recipient, checked_key, masked
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.features.templates import store as wording
from duly.features.templates.store import Preference, Suppression
from duly.jobs.application import App

__all__ = ["Preference", "Preferences", "Suppression", "SuppressionPage", "Suppressions"]

MOST_PREFERENCES = 100
"""Of a recipient."""


@dataclass(frozen=True, slots=True)
class SuppressionPage:
    """Some recipients to whom nothing is sent; `after` asks for those that follow, and is None at the end."""

    suppressions: tuple[Suppression, ...]
    after: str | None


class Preferences:
    """What recipients want. Whoever has said nothing wants everything."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def of(self, org_id: UUID | str, recipient: Recipient | str) -> builtins.list[Preference]:
        """What a recipient wants, by template; the empty key stands for all that are not named."""
        whose, key = org_uuid(org_id), _key(org_id, recipient)
        async with self._app.tenant_session(whose) as conn:
            return await wording.preferences(conn, key)

    async def set(
        self,
        org_id: UUID | str,
        recipient: Recipient | str,
        *,
        wanted: bool | None,
        template_key: str = "",
        actor: Actor,
    ) -> builtins.list[Preference]:
        """They want this template, or not; None for whatever they want of all. Without a key: all others."""
        whose, who, key = (
            org_uuid(org_id),
            change_request(actor, None, optional=True),
            _key(org_id, recipient),
        )
        named = checked_key(template_key) if template_key else ""
        values = {**key, "template_key": named, "wanted": wanted, "updated_by": who.by}

        async def change(conn: Connection) -> builtins.list[Preference]:
            await lock_org(conn, whose)
            await wording.set_preference(conn, values)
            found = await wording.preferences(conn, key)
            if len(found) > MOST_PREFERENCES:
                raise LimitExceeded(
                    f"there are {MOST_PREFERENCES} already",
                    field="template_key",
                    fix="forget some: wanted=None",
                )
            return found

        return await audited_transaction(self._app, change)


class Suppressions:
    """Whom nothing is sent to, whatever anybody wants: addresses that bounce, people who have left."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> SuppressionPage:
        """The recipients to whom an org sends nothing; an unknown org raises."""
        whose, size, start = (
            org_uuid(org_id),
            page_size(limit),
            decode_cursor(after, _channel_and_recipient) or ("", ""),
        )
        async with self._app.tenant_session(whose) as conn:
            found = await wording.list_suppressions(conn, whose, start, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        page = tuple(found[:size])
        more = len(found) > size
        return SuppressionPage(page, encode_cursor(page[-1].channel, page[-1].recipient) if more else None)

    async def add(
        self, org_id: UUID | str, recipient: Recipient | str, *, actor: Actor, reason: str
    ) -> Suppression:
        """Send nothing to them any more. Asked again, it changes nothing."""
        whose, who, key = org_uuid(org_id), change_request(actor, reason), _key(org_id, recipient)

        async def change(conn: Connection) -> Suppression:
            await lock_org(conn, whose)
            made = await wording.suppress(conn, {**key, "reason": reason, "created_by": who.by})
            if made is not None:
                await record_entry(
                    conn, who, whose, "suppression.added", masked(made.channel, made.recipient)
                )
            there = made or await wording.suppression(conn, key)
            assert there is not None  # the org is locked
            return there

        return await audited_transaction(self._app, change)

    async def remove(
        self, org_id: UUID | str, recipient: Recipient | str, *, actor: Actor, reason: str
    ) -> bool:
        """Send to them again; whether that was news."""
        whose, who, key = org_uuid(org_id), change_request(actor, reason), _key(org_id, recipient)

        async def change(conn: Connection) -> bool:
            await lock_org(conn, whose)
            gone = await wording.unsuppress(conn, key)
            if gone is not None:
                await record_entry(
                    conn,
                    who,
                    whose,
                    "suppression.removed",
                    masked(gone.channel, gone.recipient),
                    was=gone.reason,
                )
            return gone is not None

        return await audited_transaction(self._app, change)


def _key(org_id: UUID | str, said: Recipient | str) -> dict[str, Any]:
    channel, address = Recipient.read(said)
    return {"org_id": org_uuid(org_id), "channel": channel, "recipient": address}


def _channel_and_recipient(channel: str, *recipient: str) -> tuple[str, str]:
    return required_text("after", channel), required_text("after", " ".join(recipient))
