"""Filing a stored file: as a new document, as a new version, or as a document that exists already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from psycopg.errors import ForeignKeyViolation
from psycopg.types.json import Jsonb

from duly.apps.documents.errors import unknown_document, unknown_folder
from duly.apps.documents.folders.access import (
    DocumentPrincipal,
    FolderAccess,
    check_folder_writable,
    folder_access,
)
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.library.quotas import Quotas, add_usage
from duly.apps.documents.schema import Connection, fetch_one, statement
from duly.core import payload
from duly.core.errors import Conflict, ContractError, MissingField
from duly.jobs.request_context import checked_text

_MAX_NAME_LENGTH = 255
_MAX_METADATA_SIZE = 16 * 1024


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file that is in the file store and not filed yet."""

    name: str
    media_type: str
    sha256: str
    size: int
    node_id: UUID | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


class FilingResult(NamedTuple):
    """The document and version that a file was filed as."""

    document_id: UUID
    version: int
    created: bool
    """Whether it is a new document."""
    changed: bool
    """Whether it is a new version, the first one included."""


class LockedDocument(NamedTuple):
    """A document that is about to change."""

    node_id: UUID | None
    name: str
    version: int
    sha256: str
    access: FolderAccess
    """The folder access of the principal that changes it."""


async def lock_document(conn: Connection, principal: DocumentPrincipal, document_id: UUID) -> LockedDocument:
    """Lock a document until the transaction ends; raise unless the principal may change it."""
    access = await folder_access(conn, principal)
    values = {"org_id": principal.org_id, "document_id": document_id, "hidden_folders": access.hidden}
    row = await fetch_one(conn, "documents/lock", values)
    if row is None:
        raise unknown_document()
    document = LockedDocument._make((*row, access))
    await check_folder_writable(conn, principal, document.node_id, access)
    return document


async def file_document(
    conn: Connection,
    principal: DocumentPrincipal,
    incoming: IncomingFile,
    *,
    file_store: FileStore,
    quotas: Quotas,
    document_id: UUID | None = None,
) -> FilingResult:
    """File it in the caller's transaction. Content that the principal can see already is not filed twice."""
    content = {"org_id": principal.org_id, "sha256": incoming.sha256}
    await conn.execute(statement("documents/lock_content"), content)
    if not await file_store.has_original(incoming.sha256, incoming.size):
        # The last document with this content was deleted while the file was received.
        raise Conflict("the file was removed", field="file", fix="send it again")
    if document_id is None:
        return await _file_as_document(conn, principal, incoming, quotas)
    return await _file_as_version(conn, principal, incoming, quotas, document_id)


async def _file_as_document(
    conn: Connection, principal: DocumentPrincipal, incoming: IncomingFile, quotas: Quotas
) -> FilingResult:
    access = await folder_access(conn, principal)
    await check_folder_writable(conn, principal, incoming.node_id, access)
    content = {"org_id": principal.org_id, "sha256": incoming.sha256, "hidden_folders": access.hidden}
    existing = await fetch_one(conn, "documents/find_content", content)
    if existing is not None:
        document_id, version = existing
        return FilingResult(document_id, version, created=False, changed=False)
    await add_usage(conn, principal.org_id, quotas, incoming.sha256, documents=1, size=incoming.size)
    try:
        row = await fetch_one(conn, "documents/insert", _values(principal, incoming))
    except ForeignKeyViolation:
        raise unknown_folder() from None
    assert row is not None
    return FilingResult(row[0], 1, created=True, changed=True)


async def _file_as_version(
    conn: Connection,
    principal: DocumentPrincipal,
    incoming: IncomingFile,
    quotas: Quotas,
    document_id: UUID,
) -> FilingResult:
    document = await lock_document(conn, principal, document_id)
    if document.sha256 == incoming.sha256:
        return FilingResult(document_id, document.version, created=False, changed=False)
    quotas.check_versions(document.version + 1)
    await add_usage(conn, principal.org_id, quotas, incoming.sha256, documents=0, size=incoming.size)
    values = {**_values(principal, incoming), "document_id": document_id}
    row = await fetch_one(conn, "documents/add_version", values)
    assert row is not None
    return FilingResult(document_id, row[0], created=False, changed=True)


def _values(principal: DocumentPrincipal, incoming: IncomingFile) -> dict[str, Any]:
    return {
        "org_id": principal.org_id,
        "node_id": incoming.node_id,
        "name": checked_name(incoming.name),
        "sha256": incoming.sha256,
        "size": incoming.size,
        "media_type": incoming.media_type,
        "metadata": checked_metadata(incoming.metadata),
        "created_by": principal.name,
    }


def checked_name(name: str) -> str:
    """Return the last part of a path as a display name: printable, and of limited length."""
    last = checked_text("name", name.replace("\\", "/").rstrip("/").rpartition("/")[2].strip())
    if last is None or last in (".", ".."):
        raise MissingField("missing", field="name", fix="pass the name of the file")
    return shortened_name("".join(letter if letter.isprintable() else "_" for letter in last))


def shortened_name(name: str) -> str:
    """Return a name of at most 255 characters that keeps its suffix, which tells the type of the file."""
    stem, dot, suffix = name.rpartition(".")
    if len(name) <= _MAX_NAME_LENGTH or not dot or len(suffix) > 10:
        return name[:_MAX_NAME_LENGTH]
    return f"{stem[: _MAX_NAME_LENGTH - len(suffix) - 1]}.{suffix}"


def checked_metadata(metadata: Mapping[str, Any]) -> Jsonb:
    """Return metadata as a JSON column; raise if it is too large or contains secrets."""
    values = dict(metadata)
    try:
        size = len(json.dumps(values).encode())
    except (TypeError, ValueError):
        raise ContractError("not JSON", field="metadata", fix="pass an object of JSON values") from None
    if size > _MAX_METADATA_SIZE:
        raise ContractError(
            f"{size} bytes of JSON", field="metadata", fix=f"pass at most {_MAX_METADATA_SIZE} bytes"
        )
    payload.check_payload(values, size, "metadata")
    return Jsonb(values)
