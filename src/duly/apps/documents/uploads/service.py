"""Uploads of large files in parts: announced by hash, resumable, and verified at the end."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from duly.apps.documents.elements import Engine
from duly.apps.documents.errors import UnknownUpload, UploadIncomplete
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.library.file_store import upload_folder
from duly.apps.documents.library.filing import FilingResult, IncomingFile, checked_name
from duly.apps.documents.library.media_types import media_type
from duly.apps.documents.library.quotas import check_quotas
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.library.service import MAX_FILE_SIZE, DocumentLibrary, MeasuredStream
from duly.apps.documents.models import OpenUpload
from duly.apps.documents.principal_service import PrincipalService
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import ContractError, LimitExceeded
from duly.jobs.application import App

PART_SIZE = 8 * 2**20
_MAX_OPEN_UPLOADS = 100
_SHA256 = re.compile("[0-9a-f]{64}")


class Upload(NamedTuple):
    """The state of an upload."""

    upload_id: UUID | None
    """None if the principal has the file already and nothing needs to be sent."""
    document_id: UUID | None
    """The document with this content, if the principal can see one."""
    size: int
    part_size: int
    received: Sequence[int]
    """The numbers of the received parts, from 1."""

    @property
    def parts(self) -> int:
        """The number of parts of the whole file."""
        return -(-self.size // self.part_size)

    @property
    def missing(self) -> Sequence[int]:
        """The numbers of the parts that are still to be sent."""
        return [part for part in range(1, self.parts + 1) if part not in set(self.received)]


class Uploads(PrincipalService):
    """The uploads of a principal; other principals cannot see them."""

    def __init__(self, app: App, library: DocumentLibrary) -> None:
        super().__init__(app)
        self._library = library

    async def begin(self, principal: DocumentPrincipal, sha256: str, size: int) -> Upload:
        """Announce a file. Announcing it again resumes its upload."""
        if not _SHA256.fullmatch(sha256):
            raise ContractError("not a SHA-256", field="sha256", fix="pass 64 lower-case hex digits")
        if not 0 < size <= MAX_FILE_SIZE:
            raise ContractError(f"{size} bytes", field="size", fix=f"send 1 to {MAX_FILE_SIZE} bytes")
        values = {"org_id": principal.org_id, "created_by": principal.name, "sha256": sha256, "size": size}
        async with self._session(principal) as conn:
            hidden = await hidden_folders(conn, principal)
            existing = await fetch_one(conn, "documents/find_content", {**values, "hidden_folders": hidden})
            if existing is not None:
                return Upload(None, existing[0], size, PART_SIZE, ())
            await self._remove_expired(conn, principal)
            await self._check_limits(conn, values)
            await conn.execute(statement("uploads/delete_parts_of_other_size"), values)
            row = await fetch_one(conn, "uploads/upsert", {**values, "part_size": PART_SIZE})
            assert row is not None
            return await self._upload(conn, principal, *row)

    async def get(self, principal: DocumentPrincipal, upload_id: UUID) -> Upload:
        """Return the state of an upload."""
        async with self._session(principal) as conn:
            row = await self._find(conn, principal, upload_id)
            return await self._upload(conn, principal, upload_id, row.size, row.part_size)

    async def list(self, principal: DocumentPrincipal) -> Sequence[OpenUpload]:
        """Return the open uploads of the principal, newest first."""
        values = {"org_id": principal.org_id, "created_by": principal.name}
        async with self._session(principal) as conn:
            rows = await fetch_all(conn, "uploads/list", values)
        return [OpenUpload.model_validate(row[0]) for row in rows]

    async def put(
        self, principal: DocumentPrincipal, upload_id: UUID, part: int, chunks: AsyncIterator[bytes]
    ) -> Upload:
        """Save a part; sent again, it replaces the one before."""
        upload = await self.get(principal, upload_id)
        if not 1 <= part <= upload.parts:
            raise ContractError(f"no part {part}", field="part", fix=f"send parts 1 to {upload.parts}")
        size = upload.part_size if part < upload.parts else upload.size - (part - 1) * upload.part_size
        file_store = await self._library.file_store(principal.org_id)
        # Measured while it is received: a part of the wrong size must not replace a good one.
        stream = MeasuredStream(chunks, size, size, field="body")
        saved = await file_store.save_part(upload_id, part, aiter(stream))
        values = {"org_id": principal.org_id, "upload_id": upload_id, "part": part}
        try:
            async with self._session(principal) as conn:
                if (await self._find(conn, principal, upload_id)).size != upload.size:
                    raise _incomplete("the file was announced again with another size")
                await conn.execute(
                    statement("uploads/upsert_part"), {**values, "sha256": saved.sha256, "size": saved.size}
                )
        except UnknownUpload:
            # Abandoned while the part was received.
            await file_store.remove_folder(upload_folder(upload_id))
            raise
        return await self.get(principal, upload_id)

    async def finish(
        self,
        principal: DocumentPrincipal,
        upload_id: UUID,
        name: str,
        *,
        node_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        document_id: UUID | None = None,
        engine: Engine | None = "fast",
    ) -> FilingResult:
        """Join the parts, verify size and hash, and file the result."""
        name = checked_name(name)
        upload = await self.get(principal, upload_id)
        if upload.missing:
            raise _incomplete(f"{len(upload.missing)} of {upload.parts} parts are missing")
        async with self._session(principal) as conn:
            announced = await self._find(conn, principal, upload_id)
        file_store = await self._library.file_store(principal.org_id)
        stream = MeasuredStream(file_store.read_parts(upload_id, upload.parts))
        saved = await file_store.save_original(aiter(stream))
        if saved.sha256 != announced.sha256:
            await self.abandon(principal, upload_id, saved.sha256)
            raise _incomplete("the file does not have the announced hash")
        incoming = IncomingFile(
            name, media_type(name, stream.head), saved.sha256, saved.size, node_id, metadata or {}
        )
        filed = await self._library.file(principal, incoming, document_id=document_id, engine=engine)
        await self.abandon(principal, upload_id)
        return filed

    async def abandon(self, principal: DocumentPrincipal, upload_id: UUID, *joined: str) -> None:
        """Delete an upload; its parts, and the files that were `joined` from them, are removed."""
        async with self._session(principal) as conn:
            row = await self._find(conn, principal, upload_id)
            await conn.execute(
                statement("uploads/delete"), {"org_id": principal.org_id, "upload_id": upload_id}
            )
            await schedule_file_removal(
                self._app, conn, principal, uploads=[upload_id], originals=[row.sha256, *joined]
            )

    async def _check_limits(self, conn: Connection, values: Mapping[str, Any]) -> None:
        row = await fetch_one(conn, "uploads/count_others", values)
        if row is not None and row[0] >= _MAX_OPEN_UPLOADS:
            raise LimitExceeded(
                f"you have {_MAX_OPEN_UPLOADS} open uploads", field="uploads", fix="finish or abandon some"
            )
        quotas, size = self._library.options.quotas, values["size"]
        await check_quotas(conn, values["org_id"], quotas, documents=0, size=size, sha256=values["sha256"])

    async def _remove_expired(self, conn: Connection, principal: DocumentPrincipal) -> None:
        rows = await fetch_all(conn, "uploads/delete_expired", {"org_id": principal.org_id})
        if rows:
            await schedule_file_removal(self._app, conn, principal, uploads=[row[0] for row in rows])

    async def _find(self, conn: Connection, principal: DocumentPrincipal, upload_id: UUID) -> _UploadRow:
        values = {"org_id": principal.org_id, "upload_id": upload_id, "created_by": principal.name}
        row = await fetch_one(conn, "uploads/read", values)
        if row is None:
            raise UnknownUpload("no such upload", field="upload_id", fix="announce the file again")
        return _UploadRow(*row)

    async def _upload(
        self, conn: Connection, principal: DocumentPrincipal, upload_id: UUID, size: int, part_size: int
    ) -> Upload:
        rows = await fetch_all(
            conn, "uploads/list_parts", {"org_id": principal.org_id, "upload_id": upload_id}
        )
        return Upload(upload_id, None, size, part_size, [row[0] for row in rows])


class _UploadRow(NamedTuple):
    upload_id: UUID
    sha256: str
    size: int
    part_size: int


def _incomplete(message: str) -> UploadIncomplete:
    return UploadIncomplete(message, field="upload_id", fix="send the missing parts, or start again")
