"""Putting a file into the library: as a new document, a new version, or the one that is there already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as given
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
from duly.apps.documents.library.quotas import Quotas, count
from duly.apps.documents.schema import Connection, fetch_one, statement
from duly.core import payload
from duly.core.errors import Conflict, ContractError, MissingField
from duly.jobs.request_context import checked_text

_LONGEST_NAME = 255
_METADATA_MAX = 16 * 1024


@dataclass(frozen=True, slots=True)
class IncomingFile:
    """A file that is in the file_store, and what is said of it."""

    name: str
    media_type: str
    sha256: str
    size: int
    node_id: UUID | None = None
    metadata: Mapping[str, Any] = given(default_factory=dict)


class FilingResult(NamedTuple):
    """Where a file is now."""

    document_id: UUID
    version: int
    created: bool
    """Whether it is a new document."""
    changed: bool
    """Whether it is a new version, the first one included."""


async def file_document(
    conn: Connection,
    who: DocumentPrincipal,
    incoming: IncomingFile,
    *,
    file_store: FileStore,
    quotas: Quotas,
    document_id: UUID | None = None,
) -> FilingResult:
    """File it, in their transaction. Content that they can see already is not filed twice."""
    await conn.execute(statement("documents/lock_content"), {"org_id": who.org_id, "sha256": incoming.sha256})
    if not await file_store.has_original(incoming.sha256, incoming.size):
        # Its last document was deleted while it came in.
        raise Conflict("the file is gone", field="file", fix="send it again")
    if document_id is None:
        return await _as_document(conn, who, incoming, quotas)
    return await _as_version(conn, who, incoming, quotas, document_id)


async def _as_document(
    conn: Connection, who: DocumentPrincipal, incoming: IncomingFile, quotas: Quotas
) -> FilingResult:
    access = await folder_access(conn, who)
    await check_folder_writable(conn, who, incoming.node_id, access)
    same = {"org_id": who.org_id, "sha256": incoming.sha256, "hidden_folders": access.hidden}
    there = await fetch_one(conn, "documents/find_content", same)
    if there is not None:
        return FilingResult(there[0], there[1], created=False, changed=False)
    await count(conn, who.org_id, quotas, incoming.sha256, documents=1, size=incoming.size)
    try:
        made = await fetch_one(conn, "documents/insert", _values(who, incoming))
    except ForeignKeyViolation:
        raise unknown_folder() from None
    assert made is not None
    return FilingResult(made[0], 1, created=True, changed=True)


async def _as_version(
    conn: Connection, who: DocumentPrincipal, incoming: IncomingFile, quotas: Quotas, document_id: UUID
) -> FilingResult:
    found = await lock_document(conn, who, document_id)
    if found.sha256 == incoming.sha256:
        return FilingResult(document_id, found.version, created=False, changed=False)
    quotas.check_versions(found.version + 1)
    await count(conn, who.org_id, quotas, incoming.sha256, documents=0, size=incoming.size)
    values = {**_values(who, incoming), "document_id": document_id}
    made = await fetch_one(conn, "documents/add_version", values)
    assert made is not None
    return FilingResult(document_id, made[0], created=False, changed=True)


class LockedDocument(NamedTuple):
    """A document that is about to change."""

    node_id: UUID | None
    name: str
    version: int
    sha256: str
    access: FolderAccess
    """Of whoever changes it."""


async def lock_document(conn: Connection, who: DocumentPrincipal, document_id: UUID) -> LockedDocument:
    """A document that they may change, held until the end of the transaction."""
    access = await folder_access(conn, who)
    values = {"org_id": who.org_id, "document_id": document_id, "hidden_folders": access.hidden}
    found = await fetch_one(conn, "documents/lock", values)
    if found is None:
        raise unknown_document()
    node_id, name, version, sha256 = found
    await check_folder_writable(conn, who, node_id, access)
    return LockedDocument(node_id, name, version, sha256, access)


def checked_name(name: str) -> str:
    """A name to show: the last part of a path, without what cannot be shown."""
    last = checked_text("name", name.replace("\\", "/").rstrip("/").rpartition("/")[2].strip())
    if last is None or last in (".", ".."):
        raise MissingField("missing", field="name", fix="say what the file is called")
    shown = "".join(letter if letter.isprintable() else "_" for letter in last)
    return shown if len(shown) <= _LONGEST_NAME else _shortened(shown)


def checked_metadata(metadata: Mapping[str, Any]) -> Jsonb:
    """Facts about a document: a small JSON object, and nothing secret."""
    given = dict(metadata)
    try:
        size = len(json.dumps(given).encode())
    except (TypeError, ValueError):
        raise ContractError("not JSON", field="metadata", fix="pass an object of JSON values") from None
    if size > _METADATA_MAX:
        raise ContractError(f"{size} bytes", field="metadata", fix=f"keep to {_METADATA_MAX} bytes of JSON")
    payload.check_payload(given, size, "metadata")
    return Jsonb(given)


def _shortened(name: str) -> str:
    """As long as it may be, with its ending, which says what it is."""
    stem, dot, ending = name.rpartition(".")
    if not dot or len(ending) > 10:
        return name[:_LONGEST_NAME]
    return f"{stem[: _LONGEST_NAME - len(ending) - 1]}.{ending}"


def _values(who: DocumentPrincipal, incoming: IncomingFile) -> dict[str, Any]:
    return {
        "org_id": who.org_id,
        "node_id": incoming.node_id,
        "name": checked_name(incoming.name),
        "sha256": incoming.sha256,
        "size": incoming.size,
        "media_type": incoming.media_type,
        "metadata": checked_metadata(incoming.metadata),
        "created_by": who.name,
    }
