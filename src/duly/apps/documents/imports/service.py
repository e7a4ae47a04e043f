"""Accounts elsewhere that documents are brought in from. Admins of the org make and remove them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from psycopg.errors import UniqueViolation
from pydantic import BaseModel, Field

from duly.apps.documents.folders.access import (
    DocumentPrincipal,
    check_folder_writable,
    hidden_folders,
    is_admin,
)
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.imports import remote_paths as names
from duly.apps.documents.imports.models import JOB_TYPES, Imported
from duly.apps.documents.imports.providers.remote import Provider
from duly.apps.documents.imports.secrets import checked_ref
from duly.apps.documents.imports.target_folders import Keeping
from duly.apps.documents.library.filing import checked_name
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import Conflict, ContractError, Forbidden, NotFound
from duly.features.audit.service import Audit
from duly.jobs.application import App
from duly.jobs.handle import Handle
from duly.jobs.request_context import checked_text

_DRIVE = re.compile(r"[A-Za-z0-9!_.-]{1,255}")
_LONGEST = 255


class UnknownConnector(NotFound):
    """No connector of that id in this org."""

    code = "connector.unknown"


class ConnectorNameTaken(Conflict):
    """The org has a connector of that name."""

    code = "connector.name_taken"


class Connector(BaseModel):
    """An account elsewhere."""

    connector_id: UUID
    provider: Provider
    name: str
    secret_ref: str = Field(description="What its secret is called; the secret is nowhere to be read.")
    account: str | None = Field(description="The account as people know it.")
    drive: str | None = Field(description="A drive, shared drive or namespace; null is the account's own.")
    node_id: UUID | None = Field(description="The folder that its documents go to; null is the root.")
    created_by: str
    created_at: datetime
    disabled_at: datetime | None
    last_import_at: datetime | None


class Connectors:
    """What visitors do with connectors."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._audit = Audit(app)

    async def create(
        self,
        who: DocumentPrincipal,
        provider: Provider,
        name: str,
        secret_ref: str,
        *,
        node_id: UUID | None = None,
        account: str | None = None,
        drive: str | None = None,
    ) -> Connector:
        """A new connector. Its secret need not be there yet."""
        values = {
            "provider": _provider(provider),
            "name": checked_name(name),
            "secret_ref": checked_ref(secret_ref),
            "account": _short("account", account),
            "drive": _drive(drive),
        }
        async with self._app.tenant_session(who.org_id) as conn:
            await _check_admin(conn, who)
            await check_folder_writable(conn, who, node_id)
            placed = {"org_id": who.org_id, "node_id": node_id, "created_by": who.name}
            try:
                made = await fetch_one(conn, "connectors/insert", {**values, **placed})
            except UniqueViolation:
                raise ConnectorNameTaken("there is one", field="name", fix="choose another name") from None
            assert made is not None
            connector = Connector.model_validate(made[0])
            await self._note(conn, who, "connector.created", connector.connector_id, **values)
        return connector

    async def list(self, who: DocumentPrincipal) -> Sequence[Connector]:
        """Those that bring documents where they may see them, by their names."""
        async with self._app.tenant_session(who.org_id) as conn:
            values = {"org_id": who.org_id, "hidden_folders": await hidden_folders(conn, who)}
            return [
                Connector.model_validate(row[0]) for row in await fetch_all(conn, "connectors/list", values)
            ]

    async def get(self, who: DocumentPrincipal, connector_id: UUID) -> Connector:
        """One of them."""
        async with self._app.tenant_session(who.org_id) as conn:
            return await read(conn, who, connector_id)

    async def disable(
        self, who: DocumentPrincipal, connector_id: UUID, *, reason: str | None = None
    ) -> Connector:
        """Nothing is brought in through it any more."""
        return await self._set(who, connector_id, disabled=True, reason=reason)

    async def enable(
        self, who: DocumentPrincipal, connector_id: UUID, *, reason: str | None = None
    ) -> Connector:
        """It may be used again."""
        return await self._set(who, connector_id, disabled=False, reason=reason)

    async def remove(self, who: DocumentPrincipal, connector_id: UUID, *, reason: str | None = None) -> None:
        """Forget it, and which file became which document. The documents stay, and so does the secret."""
        async with self._app.tenant_session(who.org_id) as conn:
            await _check_admin(conn, who)
            found = await read(conn, who, connector_id)
            await conn.execute(
                statement("connectors/delete"), {"org_id": who.org_id, "connector_id": connector_id}
            )
            told = {"name": found.name, "provider": found.provider}
            await self._note(conn, who, "connector.deleted", connector_id, reason=reason, **told)

    async def begin_import(
        self,
        who: DocumentPrincipal,
        connector_id: UUID,
        *,
        remote_path: str = "",
        files: Sequence[str] = (),
        folders: Keeping = "keep",
    ) -> Handle[Imported]:
        """Have a folder brought in, or files of it; its subfolders are kept, or all goes into one (`flat`).

        The job is for their eyes: it names what lies there.
        """
        where, wanted = names.folder(remote_path), [names.file(name) for name in files]
        async with self._app.tenant_session(who.org_id) as conn:
            connector = await read(conn, who, connector_id)
            await check_folder_writable(conn, who, connector.node_id)
        if connector.disabled_at is not None:
            raise Conflict("the connector is disabled", field="connector_id", fix="have it enabled")
        job = self._app.registry.get(JOB_TYPES[connector.provider])
        asked = job.options(
            org_id=who.org_id,
            actor=who.actor,
            subject_id=private_subject(who),
            # Once at a time, and as often as they like: what is there differs from day to day.
            run_identity=[str(connector_id), where, wanted, folders, who.name],
            idempotency_key=f"import:{uuid4()}",
        )
        return await asked.enqueue(
            connector_id=connector_id, remote_path=where, files=wanted, folders=folders
        )

    async def _set(
        self, who: DocumentPrincipal, connector_id: UUID, *, disabled: bool, reason: str | None
    ) -> Connector:
        values = {"org_id": who.org_id, "connector_id": connector_id, "disabled": disabled}
        async with self._app.tenant_session(who.org_id) as conn:
            await _check_admin(conn, who)
            changed = await fetch_one(conn, "connectors/set_disabled", values)
            if changed is None:
                raise unknown_connector()
            action = "connector.disabled" if disabled else "connector.enabled"
            await self._note(conn, who, action, connector_id, reason=reason)
        return Connector.model_validate(changed[0])

    async def _note(
        self, conn: Connection, who: DocumentPrincipal, action: str, connector_id: UUID, **detail: Any
    ) -> None:
        await self._audit.record(conn, who.org_id, action, str(connector_id), actor=who.actor, **detail)


async def read(conn: Connection, who: DocumentPrincipal, connector_id: UUID) -> Connector:
    """A connector whose folder is open to them."""
    values = {
        "org_id": who.org_id,
        "connector_id": connector_id,
        "hidden_folders": await hidden_folders(conn, who),
    }
    found = await fetch_one(conn, "connectors/read", values)
    if found is None:
        raise unknown_connector()
    return Connector.model_validate(found[0])


def unknown_connector() -> UnknownConnector:
    """The same for an unknown one, another org's, and one whose folder is closed to them."""
    return UnknownConnector("no such connector", field="connector_id", fix="check the id, or ask for access")


async def _check_admin(conn: Connection, who: DocumentPrincipal) -> None:
    # Whoever makes one chooses among the secrets of the org, and where what they open is to be seen.
    if not await is_admin(conn, who):
        raise Forbidden("connectors are made by admins", field="connector", fix="ask an admin of the org")


def _provider(provider: str) -> str:
    if provider not in JOB_TYPES:
        raise ContractError("unknown", field="provider", fix=f"one of {', '.join(JOB_TYPES)}")
    return provider


def _short(field: str, value: str | None) -> str | None:
    if value is not None and len(value) > _LONGEST:
        raise ContractError("too long", field=field, fix=f"keep to {_LONGEST} characters")
    return checked_text(field, value)


def _drive(drive: str | None) -> str | None:
    if drive is not None and not _DRIVE.fullmatch(drive):
        raise ContractError(
            "no id of a drive", field="drive", fix="copy it from the provider, or leave it out"
        )
    return drive
