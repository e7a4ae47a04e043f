"""Webhook endpoints: create, update, disable, enable, delete, rotate secrets. Every change is audited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any
from uuid import UUID

from duly.core.errors import Conflict, ContractError
from duly.core.job import Actor
from duly.core.states import EventType
from duly.db.pool import Connection
from duly.features.arguments import checked_overlap, org_uuid, required_text
from duly.features.audit.entries import audited_transaction, change_request
from duly.features.orgs.service import lock_org
from duly.features.pagination import decode_cursor, read_org_page
from duly.features.system_jobs import is_system_job
from duly.features.webhooks import store
from duly.features.webhooks.allowed_destinations import AllowedUrls
from duly.features.webhooks.deliveries import Deliveries, change_endpoint, read_endpoint
from duly.features.webhooks.models import Endpoint, EndpointPage, NewSecret
from duly.features.webhooks.signed_message import checked_secret, new_secret
from duly.jobs.application import App
from duly.jobs.request_context import checked_text

EVENT_TYPES = (*(kind.value for kind in EventType), "job.*", "*")
"""The event types that an endpoint can select."""
MAX_ENDPOINTS = 20
"""Endpoints per org."""
MAX_SECRETS = 5
"""Secrets of an endpoint that sign at a time."""
MAX_JOB_TYPES = 100
_FIRST_ID = UUID(int=0)


class Webhooks:
    """The endpoints of the orgs of an application. Those of the installation belong to the system org."""

    def __init__(self, app: App, allowed: AllowedUrls | None = None) -> None:
        self._app = app
        self._allowed = allowed or AllowedUrls()
        self.deliveries = Deliveries(app)

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
        """Create an endpoint for events that commit from now on. Its secret is returned only here.

        Without job types it receives events of all. Pass a secret if the receiver has one already.
        """
        org, request = org_uuid(org_id), change_request(actor, reason)
        signing_secret = new_secret() if secret is None else checked_secret(secret)
        fields = self._checked(
            {"url": url, "event_types": event_types, "job_types": job_types, "description": description}
        )

        async def change(conn: Connection) -> NewSecret:
            await lock_org(conn, org)
            if (count := await store.count(conn, org)) >= MAX_ENDPOINTS:
                raise Conflict(f"this org has {count} endpoints", field="org_id", fix="delete one of them")
            values = {"org_id": org, "created_by": request.by, **fields}
            created = await store.create(conn, values, signing_secret)
            await store.record_change(conn, created, "created", request, _audit_detail(created))
            return NewSecret(created, signing_secret)

        return await audited_transaction(self._app, change)

    async def list(self, org_id: UUID | str, *, limit: int = 50, after: str | None = None) -> EndpointPage:
        """Return the endpoints of an org, including disabled ones; an unknown org raises."""
        org, start = org_uuid(org_id), decode_cursor(after, UUID) or _FIRST_ID
        page = await read_org_page(
            self._app,
            org,
            lambda conn, count: store.list_after(conn, org, start, limit=count),
            lambda last: last.endpoint_id,
            limit=limit,
        )
        return EndpointPage(*page)

    async def get(self, org_id: UUID | str, endpoint_id: UUID | str) -> Endpoint:
        """Return an endpoint; an unknown id raises."""
        org = org_uuid(org_id)
        async with self._app.tenant_session(org) as conn:
            return await read_endpoint(conn, org, endpoint_id)

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
        """Update an endpoint; omitted fields stay, and an empty list of job types means all.

        Pending deliveries go to the new URL.
        """
        request = change_request(actor, reason)
        fields = {"url": url, "event_types": event_types, "job_types": job_types, "description": description}
        values = self._checked({name: value for name, value in fields.items() if value is not None})

        async def update(conn: Connection, endpoint: Endpoint) -> Endpoint:
            before = _fields(endpoint)
            changed = sorted(name for name, value in values.items() if before[name] != value)
            if not changed:
                return endpoint
            updated = await store.update(conn, endpoint, {**before, **values})
            detail = {"changed": changed, **_audit_detail(updated)}
            await store.record_change(conn, updated, "changed", request, detail)
            return updated

        return await change_endpoint(self._app, store.lock, org_id, endpoint_id, update)

    async def disable(
        self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str
    ) -> Endpoint:
        """Disable an endpoint: pending deliveries wait, and new events are not sent later. Idempotent."""
        request = change_request(actor, reason)

        async def disable(conn: Connection, endpoint: Endpoint) -> Endpoint:
            if endpoint.disabled_at is not None:
                return endpoint
            await store.record_change(conn, endpoint, "disabled", request)
            return await store.disable(conn, endpoint, by=request.by, reason=request.reason)

        return await change_endpoint(self._app, store.lock, org_id, endpoint_id, disable)

    async def enable(
        self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str
    ) -> Endpoint:
        """Enable an endpoint: pending deliveries and new events are sent. Idempotent."""
        request = change_request(actor, reason)

        async def enable(conn: Connection, endpoint: Endpoint) -> Endpoint:
            if endpoint.disabled_at is None:
                return endpoint
            await store.record_change(conn, endpoint, "enabled", request)
            return await store.enable(conn, endpoint)

        return await change_endpoint(self._app, store.lock, org_id, endpoint_id, enable)

    async def remove(self, org_id: UUID | str, endpoint_id: UUID | str, *, actor: Actor, reason: str) -> None:
        """Delete an endpoint with its secrets; its pending deliveries are not sent."""
        request = change_request(actor, reason)

        async def delete(conn: Connection, endpoint: Endpoint) -> None:
            await store.delete(conn, endpoint)
            await store.record_change(conn, endpoint, "removed", request, _audit_detail(endpoint))

        await change_endpoint(self._app, store.lock, org_id, endpoint_id, delete)

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
        """Sign with a new secret at once; the old ones sign beside it until the overlap ends.

        Without an overlap they are deleted at once: use this for a leaked secret.
        """
        lifetime, request = checked_overlap(overlap), change_request(actor, reason)
        signing_secret = new_secret() if secret is None else checked_secret(secret)

        async def rotate(conn: Connection, endpoint: Endpoint) -> NewSecret:
            if (count := await store.expire_secrets(conn, endpoint, lifetime)) >= MAX_SECRETS:
                fix = "wait until one of them has expired, or rotate without an overlap"
                raise Conflict(f"{count} secrets sign already", field="endpoint_id", fix=fix)
            rotated = await store.add_secret(conn, endpoint, signing_secret)
            until = rotated.old_secret_until
            detail = {"old_secret_until": until.isoformat() if until else None}
            await store.record_change(conn, endpoint, "secret_rotated", request, detail)
            return NewSecret(rotated, signing_secret)

        return await change_endpoint(self._app, store.lock, org_id, endpoint_id, rotate)

    def _checked(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of an endpoint as they are stored."""
        checks: dict[str, Callable[[Any], Any]] = {
            "url": self._allowed.check,
            "event_types": _checked_event_types,
            "job_types": _checked_job_types,
            "description": lambda text: checked_text("description", text or None) or "",
        }
        return {name: checks[name](value) for name, value in fields.items()}


def _fields(endpoint: Endpoint) -> dict[str, Any]:
    """Return the changeable fields of an endpoint as they are stored."""
    return {
        "url": endpoint.url,
        "event_types": [*endpoint.event_types],
        "job_types": None if endpoint.job_types is None else [*endpoint.job_types],
        "description": endpoint.description,
    }


def _audit_detail(endpoint: Endpoint) -> dict[str, Any]:
    """Return the fields for the audit trail, without the URL: it may contain a token."""
    return {name: value for name, value in _fields(endpoint).items() if name != "url"}


def _checked_event_types(event_types: Iterable[str]) -> list[str]:
    selected = _checked_list("event_types", event_types)
    unknown = [name for name in selected if name not in EVENT_TYPES]
    if unknown or not selected:
        message = f"unknown event type {unknown[0]!r}" if unknown else "empty"
        raise ContractError(message, field="event_types", fix=f"use some of {', '.join(EVENT_TYPES)}")
    return [name for name in EVENT_TYPES if name in selected]


def _checked_job_types(job_types: Iterable[str] | None) -> list[str] | None:
    """Return the job types, each once, also those that only other programs register; None for all."""
    names = sorted({required_text("job_types", name) for name in _checked_list("job_types", job_types)})
    if system := [name for name in names if is_system_job(name)]:
        raise ContractError(
            f"{system[0]} is a system job of Duly", field="job_types", fix="use job types of your application"
        )
    if len(names) > MAX_JOB_TYPES:
        raise ContractError(
            f"{len(names)} are too many", field="job_types", fix=f"use up to {MAX_JOB_TYPES}, or none for all"
        )
    return names or None


def _checked_list(field: str, values: Iterable[str] | None) -> list[str]:
    if isinstance(values, str):
        raise ContractError("not a list", field=field, fix="pass a list of texts")
    return list(values or ())
