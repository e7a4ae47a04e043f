"""Connectors: accounts at cloud storage providers that documents are imported from. Admins manage them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID, uuid4

from psycopg.errors import UniqueViolation

from duly.apps.documents.folders.access import (
    DocumentPrincipal,
    check_folder_writable,
    hidden_folders,
    is_admin,
)
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.imports.models import JOB_TYPES, Connector, FolderMode, ImportResult
from duly.apps.documents.imports.providers.remote import Provider
from duly.apps.documents.imports.remote_paths import parse_file, parse_folder
from duly.apps.documents.imports.secrets import checked_ref
from duly.apps.documents.library.filing import checked_name
from duly.apps.documents.principal_service import PrincipalService
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import Conflict, ContractError, Forbidden, NotFound
from duly.jobs.handle import Handle
from duly.jobs.request_context import checked_text

_DRIVE_ID = re.compile(r"[A-Za-z0-9!_.-]{1,255}")
_MAX_ACCOUNT_LENGTH = 255


class UnknownConnector(NotFound):
    """The connector does not exist, or its folder is hidden."""

    code = "connector.unknown"


class ConnectorNameTaken(Conflict):
    """The org has a connector of that name."""

    code = "connector.name_taken"


class Connectors(PrincipalService):
    """The connectors of an org."""

    async def create(
        self,
        principal: DocumentPrincipal,
        provider: Provider,
        name: str,
        secret_ref: str,
        *,
        node_id: UUID | None = None,
        account: str | None = None,
        drive: str | None = None,
    ) -> Connector:
        """Create a connector. Its secret need not exist yet."""
        if provider not in JOB_TYPES:
            raise ContractError(
                f"unknown provider {provider!r}", field="provider", fix=f"use one of {', '.join(JOB_TYPES)}"
            )
        if account is not None and len(account) > _MAX_ACCOUNT_LENGTH:
            raise ContractError(
                f"{len(account)} characters", field="account", fix=f"use at most {_MAX_ACCOUNT_LENGTH}"
            )
        if drive is not None and not _DRIVE_ID.fullmatch(drive):
            raise ContractError(
                "not the id of a drive", field="drive", fix="copy it from the provider, or leave it out"
            )
        values = {
            "provider": provider,
            "name": checked_name(name),
            "secret_ref": checked_ref(secret_ref),
            "account": checked_text("account", account),
            "drive": drive,
        }
        owner = {"org_id": principal.org_id, "node_id": node_id, "created_by": principal.name}
        async with self._session(principal) as conn:
            await _check_admin(conn, principal)
            await check_folder_writable(conn, principal, node_id)
            try:
                row = await fetch_one(conn, "connectors/insert", {**values, **owner})
            except UniqueViolation:
                raise ConnectorNameTaken(
                    "a connector of that name exists", field="name", fix="choose another name"
                ) from None
            assert row is not None
            connector = Connector.model_validate(row[0])
            await self._record(conn, principal, "connector.created", connector.connector_id, **values)
        return connector

    async def list(self, principal: DocumentPrincipal) -> Sequence[Connector]:
        """Return the connectors whose folders are visible, by name."""
        async with self._session(principal) as conn:
            hidden = await hidden_folders(conn, principal)
            rows = await fetch_all(
                conn, "connectors/list", {"org_id": principal.org_id, "hidden_folders": hidden}
            )
        return [Connector.model_validate(row[0]) for row in rows]

    async def get(self, principal: DocumentPrincipal, connector_id: UUID) -> Connector:
        """Return a connector."""
        async with self._session(principal) as conn:
            return await read_connector(conn, principal, connector_id)

    async def disable(
        self, principal: DocumentPrincipal, connector_id: UUID, *, reason: str | None = None
    ) -> Connector:
        """Disable a connector: imports through it are refused."""
        return await self._set_disabled(principal, connector_id, disabled=True, reason=reason)

    async def enable(
        self, principal: DocumentPrincipal, connector_id: UUID, *, reason: str | None = None
    ) -> Connector:
        """Enable a connector again."""
        return await self._set_disabled(principal, connector_id, disabled=False, reason=reason)

    async def remove(
        self, principal: DocumentPrincipal, connector_id: UUID, *, reason: str | None = None
    ) -> None:
        """Delete a connector and its records of imported files. The documents and the secret stay."""
        values = {"org_id": principal.org_id, "connector_id": connector_id}
        async with self._session(principal) as conn:
            await _check_admin(conn, principal)
            connector = await read_connector(conn, principal, connector_id)
            await conn.execute(statement("connectors/delete"), values)
            await self._record(
                conn,
                principal,
                "connector.deleted",
                connector_id,
                reason=reason,
                name=connector.name,
                provider=connector.provider,
            )

    async def begin_import(
        self,
        principal: DocumentPrincipal,
        connector_id: UUID,
        *,
        remote_path: str = "",
        files: Sequence[str] = (),
        folders: FolderMode = "keep",
    ) -> Handle[ImportResult]:
        """Start the import of a remote folder, or of files of it.

        The job is visible to its requester alone, as it names remote files.
        """
        remote_path, files = parse_folder(remote_path), [parse_file(name) for name in files]
        async with self._session(principal) as conn:
            connector = await read_connector(conn, principal, connector_id)
            await check_folder_writable(conn, principal, connector.node_id)
        if connector.disabled_at is not None:
            raise Conflict("the connector is disabled", field="connector_id", fix="enable it first")
        job = self._app.registry.get(JOB_TYPES[connector.provider]).options(
            org_id=principal.org_id,
            actor=principal.actor,
            subject_id=private_subject(principal),
            # One at a time, but any number in sequence: the remote files differ from day to day.
            run_identity=[str(connector_id), remote_path, files, folders, principal.name],
            idempotency_key=f"import:{uuid4()}",
        )
        return await job.enqueue(
            connector_id=connector_id, remote_path=remote_path, files=files, folders=folders
        )

    async def _set_disabled(
        self, principal: DocumentPrincipal, connector_id: UUID, *, disabled: bool, reason: str | None
    ) -> Connector:
        values = {"org_id": principal.org_id, "connector_id": connector_id, "disabled": disabled}
        async with self._session(principal) as conn:
            await _check_admin(conn, principal)
            row = await fetch_one(conn, "connectors/set_disabled", values)
            if row is None:
                raise _unknown_connector()
            action = "connector.disabled" if disabled else "connector.enabled"
            await self._record(conn, principal, action, connector_id, reason=reason)
        return Connector.model_validate(row[0])


async def read_connector(conn: Connection, principal: DocumentPrincipal, connector_id: UUID) -> Connector:
    """Return a connector unless its folder is hidden."""
    hidden = await hidden_folders(conn, principal)
    values = {"org_id": principal.org_id, "connector_id": connector_id, "hidden_folders": hidden}
    row = await fetch_one(conn, "connectors/read", values)
    if row is None:
        raise _unknown_connector()
    return Connector.model_validate(row[0])


def _unknown_connector() -> UnknownConnector:
    """Return the same error for a connector that does not exist, is another org's, or is hidden."""
    return UnknownConnector("no such connector", field="connector_id", fix="check the id, or ask for access")


async def _check_admin(conn: Connection, principal: DocumentPrincipal) -> None:
    # A connector uses a secret of the org, and decides in which folder the files behind it become visible.
    if not await is_admin(conn, principal):
        raise Forbidden("only admins manage connectors", field="connector", fix="ask an admin of the org")
