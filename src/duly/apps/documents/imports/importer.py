"""Importing one file: into the file store while it is hashed, into the library when it is complete."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.errors import QuotaExceeded, UnknownDocument, UnknownFolder
from duly.apps.documents.extraction.service import JOB_TYPE, ExtractionTarget, start_extraction
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.imports.models import State, Taken
from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.imports.providers.remote import Damaged, NoFolder, Refused, Remote, RemoteFile
from duly.apps.documents.imports.records import Known, Records
from duly.apps.documents.imports.remote_paths import kept_path, shown_name
from duly.apps.documents.imports.service import Connector
from duly.apps.documents.imports.target_folders import Places
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.library.filing import FilingResult, IncomingFile, lock_document
from duly.apps.documents.library.filing import file_document as filed_as
from duly.apps.documents.library.media_types import HEAD, media_type
from duly.apps.documents.library.quotas import Quotas
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.schema import Connection, statement
from duly.core.errors import Conflict, Forbidden
from duly.features.audit.service import Audit
from duly.jobs.application import App

_PART = 2**20


class Shelf(NamedTuple):
    """Where files go, and for whom."""

    app: App
    who: DocumentPrincipal
    connector: Connector
    file_store: FileStore
    records: Records
    places: Places
    quotas: Quotas


class Taker:
    """Takes files of one account."""

    def __init__(self, remote: Remote, shelf: Shelf, options: ImportOptions) -> None:
        self.remote = remote
        self._shelf = shelf
        self._options = options

    async def take(self, file: RemoteFile) -> Taken:
        """Have it in the library. One that changes on its way is taken as it is then."""
        for _ in range(self._options.tries):
            known = (await self._shelf.records.known([file.remote_id])).get(file.remote_id)
            if _is_in(known, file):
                return await self._file(file, None)
            place = await self._place(file, known)
            try:
                incoming = await self._fetched(file, place)
                try:
                    return await self._file(file, incoming)
                except QuotaExceeded:
                    await self._give_up(incoming)
                    raise
            except (Damaged, Conflict):
                file = replace(await self.remote.again(file), folders=file.folders)
        raise Damaged("it never came as it was announced")

    async def _place(self, file: RemoteFile, known: Known | None) -> UUID | None:
        """Where it goes. What is a document already stays where that is, wherever the file went."""
        if known is not None and known.document_id is not None and await self._stays(file, known.document_id):
            return self._shelf.connector.node_id
        return await self._shelf.places.of(file.folders)

    async def _stays(self, file: RemoteFile, document_id: UUID) -> bool:
        """Whether it becomes a new version."""
        records = self._shelf.records
        async with records.session() as conn:
            try:
                await lock_document(conn, self._shelf.who, document_id)
            except (UnknownDocument, UnknownFolder, Forbidden):
                return False
            return not await records.is_shared(conn, file, document_id)

    async def _fetched(self, file: RemoteFile, node_id: UUID | None) -> IncomingFile:
        if file.size is not None and file.size > self._options.largest:
            raise _too_large()
        stream = _Checked(self.remote, file, self._options.largest)
        try:
            async with asyncio.timeout(self._options.file_timeout.total_seconds()):
                async with aclosing(stream.parts()) as parts:
                    kept = await self._shelf.file_store.save_original(parts)
        except TimeoutError:
            raise Damaged("the download takes too long") from None
        name, connector = shown_name(file.name), self._shelf.connector
        said = {"provider": connector.provider, "name": connector.name, "path": kept_path(file.path)[:500]}
        kind = media_type(name, bytes(stream.head))
        return IncomingFile(name, kind, kept.sha256, kept.size, node_id, {"imported_from": said})

    async def _give_up(self, incoming: IncomingFile) -> None:
        """What came and may not be kept is cleared away."""
        app, who = self._shelf.app, self._shelf.who
        async with app.tenant_session(who.org_id) as conn:
            await schedule_file_removal(app, conn, who, originals=[incoming.sha256])

    async def _file(self, file: RemoteFile, incoming: IncomingFile | None) -> Taken:
        """File it, note it and have it read: all of that, or nothing."""
        records = self._shelf.records
        async with records.session() as conn:
            known = await records.lock(conn, file)
            if known is not None and known.document_id is not None and _is_in(known, file):
                # By somebody else meanwhile, or by an attempt that was lost before it could say so.
                filed = FilingResult(known.document_id, known.version or 1, created=False, changed=False)
                state: State = "new" if known.job_id == records.job_id else "unchanged"
            elif incoming is None:
                raise Conflict("its document was deleted meanwhile", fix="take it again")
            else:
                filed = await self._filed(conn, file, incoming, known)
                state = _state(filed, known)
            await records.keep(conn, file, filed)
        return Taken.of(file, filed, state)

    async def _filed(
        self, conn: Connection, file: RemoteFile, incoming: IncomingFile, known: Known | None
    ) -> FilingResult:
        shelf = self._shelf
        # Before any row, as everybody does who files: in another order they would wait for each other.
        content = {"org_id": shelf.who.org_id, "sha256": incoming.sha256}
        await conn.execute(statement("documents/lock_content"), content)
        before = None if known is None else known.document_id
        if before is not None and await shelf.records.is_shared(conn, file, before):
            before = None
        filed = await self._placed(conn, incoming, before)
        if filed.changed:
            action = "document.created" if filed.created else "document.version_added"
            said = {"sha256": incoming.sha256, "connector_id": str(shelf.connector.connector_id)}
            whose = shelf.who
            await Audit(shelf.app).record(
                conn, whose.org_id, action, str(filed.document_id), actor=whose.actor, **said
            )
            if JOB_TYPE in shelf.app.registry:
                await start_extraction(
                    shelf.app, conn, whose, ExtractionTarget(filed.document_id, filed.version), "fast"
                )
        return filed

    async def _placed(self, conn: Connection, incoming: IncomingFile, before: UUID | None) -> FilingResult:
        who, file_store, quotas = self._shelf.who, self._shelf.file_store, self._shelf.quotas
        if before is not None:
            try:
                return await filed_as(
                    conn, who, incoming, file_store=file_store, quotas=quotas, document_id=before
                )
            except (UnknownDocument, UnknownFolder, Forbidden):
                # Deleted, or moved to where they may not change it.
                pass
        try:
            return await filed_as(conn, who, incoming, file_store=file_store, quotas=quotas)
        except (UnknownFolder, Forbidden):  # removed, or closed to them
            raise NoFolder("its folder cannot be had by whoever asked") from None


class _Checked:
    """A download that fails at its end, before anything is kept, if it is not what was announced."""

    def __init__(self, remote: Remote, file: RemoteFile, largest: int) -> None:
        self._remote = remote
        self._file = file
        self._largest = largest
        self.head = bytearray()

    async def parts(self) -> AsyncGenerator[bytes, None]:
        """Its bytes, in parts of a good size."""
        size, checksum, held = 0, self._remote.checksum(), bytearray()
        async with self._remote.download(self._file) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > self._largest:
                    raise _too_large()
                checksum.update(chunk)
                held += chunk
                if len(held) >= _PART:
                    yield self._begun(held)
                    held = bytearray()
        self._check(size, checksum.text())
        yield self._begun(held)

    def _begun(self, held: bytearray) -> bytes:
        self.head += held[: HEAD - len(self.head)]
        return bytes(held)

    def _check(self, size: int, checksum: str) -> None:
        file = self._file
        if (file.size is not None and size != file.size) or file.checksum not in (None, checksum):
            raise Damaged("what came is not what was announced")
        if size == 0:
            raise Refused("there is nothing in it", "document.empty")


def _is_in(known: Known | None, file: RemoteFile) -> bool:
    return known is not None and known.revision == file.revision and known.document_id is not None


def _state(filed: FilingResult, known: Known | None) -> State:
    if filed.changed:
        return "new" if filed.created else "changed"
    return "there" if known is None else "unchanged"


def _too_large() -> Refused:
    return Refused("larger than files may be", "import.too_large")
