"""Endpoints: made, changed, disabled, given another secret. Each change is audited in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict
from duly.core.job import Actor
from duly.db.pool import Connection
from duly.features.arguments import check_org_exists, checked_overlap, org_uuid
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.features.webhooks import store as endpoints
from duly.features.webhooks.allowed_urls import Places
from duly.features.webhooks.changes import endpoint_key, known, note, under_lock
from duly.features.webhooks.deliveries import Deliveries
from duly.features.webhooks.endpoint_rules import (
    checked_event_types,
    checked_job_types,
    checked_secret,
    new_secret,
)
from duly.features.webhooks.store import Endpoint
from duly.jobs.application import App
from duly.jobs.request_context import checked_text

__all__ = ["MOST_ENDPOINTS", "MOST_SECRETS", "Endpoint", "EndpointPage", "NewSecret", "Webhooks"]

MOST_ENDPOINTS = 20
"""Endpoints that an org may have."""
MOST_SECRETS = 5
"""Secrets of an endpoint that sign at a time."""
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class NewSecret:
    """An endpoint and its new secret, which is told this once."""

    endpoint: Endpoint
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class EndpointPage:
    """Some endpoints; `after` asks for those that follow, and is None at the end."""

    endpoints: tuple[Endpoint, ...]
    after: str | None


class Webhooks:
    """The endpoints of the orgs of an application. Those of the installation are the system's org's."""

    def __init__(self, app: App, places: Places | None = None) -> None:
        self._app = app
        self._places = places or Places()
        self.deliveries = Deliveries(app)
        """What they were told, and sending it again."""

    async def create(
        self,
        org_id: UUID | str,
        url: str,
        event_types: Iterable[str],
        *,
        job_types: Iterable[str] | None = None,
        description: str = "",
        secret: str | None = None,
        actor: Actor,
        reason: str,
    ) -> NewSecret:
        """Tell an endpoint of events that commit from now on; its secret is told here and never again.

        Without job types it hears of all. A secret of one's own is for receivers that have one already.
        """
        whose, who = org_uuid(org_id), change_request(actor, reason)
        signing = new_secret() if secret is None else checked_secret(secret)
        given = {
            "url": url,
            "event_types": event_types,
            "job_types": job_types,
            "description": description,
        }
        wanted = {"org_id": whose, "created_by": who.by, **self._checked(given)}

        async def change(conn: Connection) -> NewSecret:
            await lock_org(conn, whose)
            if (there := await endpoints.count(conn, whose)) >= MOST_ENDPOINTS:
                raise Conflict(f"this org has {there} endpoints", field="org_id", fix="remove one of them")
            made = await endpoints.create(conn, wanted, signing)
            await note(conn, made, "created", who, **_said(made))
            return NewSecret(made, signing)

        return await audited_transaction(self._app, change)

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> EndpointPage:
        """The endpoints of an org, also those that are disabled; an unknown org raises."""
        whose, size, start = org_uuid(org_id), page_size(limit), decode_cursor(after, UUID) or _FIRST
        async with self._app.tenant_session(whose) as conn:
            found = await endpoints.list_after(conn, whose, start, limit=size + 1)
            if not found:
                await check_org_exists(conn, whose)
        return EndpointPage(*split_page(found, size, lambda last: last.endpoint_id))

    async def get(self, org_id: UUID | str, endpoint_id: UUID | str) -> Endpoint:
        """One endpoint; an unknown id raises."""
        whose, which = org_uuid(org_id), endpoint_key(endpoint_id)
        async with self._app.tenant_session(whose) as conn:
            return known(await endpoints.read(conn, whose, which), which)

    async def change(
        self,
        org_id: UUID | str,
        endpoint_id: UUID | str,
        *,
        url: str | None = None,
        event_types: Iterable[str] | None = None,
        job_types: Iterable[str] | None = None,
        description: str | None = None,
        actor: Actor,
        reason: str,
    ) -> Endpoint:
        """Change a part of it; what is left out stays, and an empty list of job types means all.

        What waits to be sent goes to the new address.
        """
        given = {"url": url, "event_types": event_types, "job_types": job_types, "description": description}
        wanted = self._checked({name: value for name, value in given.items() if value is not None})
        who = change_request(actor, reason)

        async def change(conn: Connection, now: Endpoint) -> Endpoint:
            before = _definition(now)
            changed = sorted(name for name, value in wanted.items() if before[name] != value)
            if not changed:
                return now
            made = await endpoints.change(conn, now, {**before, **wanted})
            await note(conn, made, "changed", who, changed=changed, **_said(made))
            return made

        return await under_lock(self._app, org_id, endpoint_id, change)

    async def disable(
        self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str
    ) -> Endpoint:
        """Send nothing there until it is enabled: what waits goes on waiting, what happens is not told.

        Asked again, it changes nothing.
        """
        who = change_request(actor, reason)

        async def change(conn: Connection, now: Endpoint) -> Endpoint:
            if now.disabled_at is not None:
                return now
            await note(conn, now, "disabled", who)
            return await endpoints.disable(conn, now, by=who.by, reason=who.reason)

        return await under_lock(self._app, org_id, endpoint_id, change)

    async def enable(
        self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str
    ) -> Endpoint:
        """Send there again: what waits, and what happens from now on. Asked again, it changes nothing."""
        who = change_request(actor, reason)

        async def change(conn: Connection, now: Endpoint) -> Endpoint:
            if now.disabled_at is None:
                return now
            await note(conn, now, "enabled", who)
            return await endpoints.enable(conn, now)

        return await under_lock(self._app, org_id, endpoint_id, change)

    async def remove(self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str) -> None:
        """End it with its secrets; what was still to be sent there is not sent."""
        who = change_request(actor, reason)

        async def change(conn: Connection, now: Endpoint) -> None:
            await endpoints.remove(conn, now)
            await note(conn, now, "removed", who, **_said(now))

        await under_lock(self._app, org_id, endpoint_id, change)

    async def rotate_secret(
        self,
        org_id: UUID | str,
        endpoint_id: UUID | str,
        *,
        overlap: timedelta = timedelta(days=1),
        secret: str | None = None,
        actor: Actor,
        reason: str,
    ) -> NewSecret:
        """Sign with a new secret at once; the old ones sign beside it until the overlap is over.

        Without an overlap they are gone at once, as is right for one that has leaked.
        """
        beside, who = checked_overlap(overlap), change_request(actor, reason)
        signing = new_secret() if secret is None else checked_secret(secret)

        async def change(conn: Connection, now: Endpoint) -> NewSecret:
            if (old := await endpoints.end_secrets(conn, now, beside)) >= MOST_SECRETS:
                fix = "wait until one of them has ended, or rotate without an overlap"
                raise Conflict(f"{old} secrets sign already", field="endpoint_id", fix=fix)
            rotated = await endpoints.add_secret(conn, now, signing)
            until = rotated.old_secret_until
            said = {"old_secret_until": until.isoformat() if until else None}
            await note(conn, now, "secret_rotated", who, **said)
            return NewSecret(rotated, signing)

        return await under_lock(self._app, org_id, endpoint_id, change)

    def _checked(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What was given of a definition, as it is kept."""
        kept: dict[str, Callable[[Any], Any]] = {
            "url": self._places.check_url,
            "event_types": checked_event_types,
            "job_types": checked_job_types,
            "description": lambda said: checked_text("description", said or None) or "",
        }
        return {name: kept[name](value) for name, value in given.items()}


def _definition(endpoint: Endpoint) -> dict[str, Any]:
    """What can be changed of it, as it is kept."""
    return {
        "url": endpoint.url,
        "event_types": [*endpoint.event_types],
        "job_types": None if endpoint.job_types is None else [*endpoint.job_types],
        "description": endpoint.description,
    }


def _said(endpoint: Endpoint) -> dict[str, Any]:
    """Some of it for the audit trail: not the whole address, see `note`."""
    return {name: value for name, value in _definition(endpoint).items() if name != "url"}
