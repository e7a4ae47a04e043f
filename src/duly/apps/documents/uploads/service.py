"""Files that come in parts: begun with their hash, gone on with after a break, and checked at the end."""

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
from duly.apps.documents.library.quotas import check_room
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.library.service import BYTES_MAX, Library, Measured
from duly.apps.documents.models import OpenUpload
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.errors import ContractError, LimitExceeded
from duly.jobs.application import App

PART_SIZE = 8 * 2**20
_MOST_OPEN = 100
_HASH = re.compile("[0-9a-f]{64}")


class Upload(NamedTuple):
    """A file that is on its way."""

    upload_id: UUID | None
    """None if they have it already: nothing is to be sent."""
    document_id: UUID | None
    """The document that is this file, if they can see one."""
    size: int
    part_size: int
    received: Sequence[int]
    """The numbers of the parts that are here, from 1."""

    @property
    def parts(self) -> int:
        """How many there are in all."""
        return -(-self.size // self.part_size)

    @property
    def missing(self) -> Sequence[int]:
        """The parts that are still to be sent."""
        return [part for part in range(1, self.parts + 1) if part not in set(self.received)]


class Uploads:
    """What visitors do with uploads. Nobody sees another's."""

    def __init__(self, app: App, library: Library) -> None:
        self._app = app
        self._library = library

    async def begin(self, who: DocumentPrincipal, sha256: str, size: int) -> Upload:
        """Announce a file. Announced again, it goes on where it was."""
        if not _HASH.fullmatch(sha256):
            raise ContractError("no SHA-256", field="sha256", fix="pass it as 64 hex digits in lower case")
        if not 0 < size <= BYTES_MAX:
            raise ContractError(f"{size} bytes", field="size", fix=f"send 1 to {BYTES_MAX} bytes")
        values = {"org_id": who.org_id, "created_by": who.name, "sha256": sha256, "size": size}
        async with self._app.tenant_session(who.org_id) as conn:
            there = await fetch_one(
                conn, "documents/find_content", {**values, "hidden_folders": await hidden_folders(conn, who)}
            )
            if there is not None:
                return Upload(None, there[0], size, PART_SIZE, ())
            await self._forget_old(conn, who)
            await self._check_room(conn, values)
            await conn.execute(statement("uploads/forget_parts"), values)
            begun = await fetch_one(conn, "uploads/begin", {**values, "part_size": PART_SIZE})
            assert begun is not None
            return await self._shown(conn, who, *begun)

    async def get(self, who: DocumentPrincipal, upload_id: UUID) -> Upload:
        """How far an upload is."""
        async with self._app.tenant_session(who.org_id) as conn:
            found = await self._find(conn, who, upload_id)
            return await self._shown(conn, who, upload_id, found.size, found.part_size)

    async def list(self, who: DocumentPrincipal) -> Sequence[OpenUpload]:
        """Those that they have begun and not finished, the last one first."""
        values = {"org_id": who.org_id, "created_by": who.name}
        async with self._app.tenant_session(who.org_id) as conn:
            return [
                OpenUpload.model_validate(row[0]) for row in await fetch_all(conn, "uploads/list", values)
            ]

    async def put(
        self, who: DocumentPrincipal, upload_id: UUID, part: int, chunks: AsyncIterator[bytes]
    ) -> Upload:
        """Keep a part; sent again, it replaces the one before."""
        before = await self.get(who, upload_id)
        if not 1 <= part <= before.parts:
            raise ContractError("no such part", field="part", fix=f"send parts 1 to {before.parts}")
        wanted = before.part_size if part < before.parts else before.size - (part - 1) * before.part_size
        file_store = await self._library.file_store(who.org_id)
        # Checked as it comes: a part of the wrong size must not replace a good one.
        kept = await file_store.save_part(
            upload_id, part, aiter(Measured(chunks, wanted, wanted, field="body"))
        )
        values = {"org_id": who.org_id, "upload_id": upload_id, "part": part}
        try:
            async with self._app.tenant_session(who.org_id) as conn:
                if (await self._find(conn, who, upload_id)).size != before.size:
                    raise _incomplete("it was announced with another size meanwhile")
                await conn.execute(
                    statement("uploads/put_part"), {**values, "sha256": kept.sha256, "size": kept.size}
                )
        except UnknownUpload:
            await file_store.remove_folder(upload_folder(upload_id))  # given up meanwhile
            raise
        return await self.get(who, upload_id)

    async def finish(
        self,
        who: DocumentPrincipal,
        upload_id: UUID,
        name: str,
        *,
        node_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        document_id: UUID | None = None,
        engine: Engine | None = "fast",
    ) -> FilingResult:
        """Join the parts, check what was announced, and file it."""
        shown = checked_name(name)
        upload = await self.get(who, upload_id)
        if upload.missing:
            raise _incomplete(f"{len(upload.missing)} of {upload.parts} parts are missing")
        async with self._app.tenant_session(who.org_id) as conn:
            found = await self._find(conn, who, upload_id)
        file_store = await self._library.file_store(who.org_id)
        stream = Measured(file_store.read_parts(upload_id, upload.parts))
        kept = await file_store.save_original(aiter(stream))
        if kept.sha256 != found.sha256:
            await self.abandon(who, upload_id, kept.sha256)
            raise _incomplete("the file is not the one that was announced")
        kind = media_type(shown, stream.head)
        incoming = IncomingFile(shown, kind, kept.sha256, kept.size, node_id, metadata or {})
        filed = await self._library.file(who, incoming, document_id=document_id, engine=engine)
        await self.abandon(who, upload_id)
        return filed

    async def abandon(self, who: DocumentPrincipal, upload_id: UUID, *joined: str) -> None:
        """Give an upload up; its parts, and what was made of them, are cleared away."""
        async with self._app.tenant_session(who.org_id) as conn:
            found = await self._find(conn, who, upload_id)
            await conn.execute(statement("uploads/delete"), {"org_id": who.org_id, "upload_id": upload_id})
            contents = [found.sha256, *joined]
            await schedule_file_removal(self._app, conn, who, uploads=[upload_id], originals=contents)

    async def _check_room(self, conn: Connection, values: Mapping[str, Any]) -> None:
        others = await fetch_one(conn, "uploads/count", values)
        if others is not None and others[0] >= _MOST_OPEN:
            raise LimitExceeded(
                f"{_MOST_OPEN} uploads are open", field="uploads", fix="finish some, or give them up"
            )
        quotas, size = self._library.options.quotas, values["size"]
        await check_room(conn, values["org_id"], quotas, documents=0, size=size, sha256=values["sha256"])

    async def _forget_old(self, conn: Connection, who: DocumentPrincipal) -> None:
        old = await fetch_all(conn, "uploads/delete_old", {"org_id": who.org_id})
        if old:
            await schedule_file_removal(self._app, conn, who, uploads=[row[0] for row in old])

    async def _find(self, conn: Connection, who: DocumentPrincipal, upload_id: UUID) -> _Begun:
        values = {"org_id": who.org_id, "upload_id": upload_id, "created_by": who.name}
        found = await fetch_one(conn, "uploads/read", values)
        if found is None:
            raise UnknownUpload("no such upload", field="upload_id", fix="begin it again")
        return _Begun(*found)

    async def _shown(
        self, conn: Connection, who: DocumentPrincipal, upload_id: UUID, size: int, part_size: int
    ) -> Upload:
        found = await fetch_all(conn, "uploads/parts", {"org_id": who.org_id, "upload_id": upload_id})
        return Upload(upload_id, None, size, part_size, [row[0] for row in found])


class _Begun(NamedTuple):
    upload_id: UUID
    sha256: str
    size: int
    part_size: int


def _incomplete(message: str) -> UploadIncomplete:
    return UploadIncomplete(message, field="upload_id", fix="send the parts that are missing, or begin again")
