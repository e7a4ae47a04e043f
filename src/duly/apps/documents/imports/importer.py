"""Import one file: download it into the file store, verify it, and file it."""

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
from duly.apps.documents.imports.models import Connector, ImportedFile, ImportState
from duly.apps.documents.imports.options import ImportOptions
from duly.apps.documents.imports.providers.remote import (
    DownloadDamaged,
    FileRefused,
    FolderUnavailable,
    Remote,
    RemoteFile,
)
from duly.apps.documents.imports.records import FileRecord, ImportRecords
from duly.apps.documents.imports.remote_paths import display_name, printable_path
from duly.apps.documents.imports.target_folders import TargetFolders
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.library.filing import FilingResult, IncomingFile, file_document, lock_document
from duly.apps.documents.library.media_types import HEAD_SIZE, media_type
from duly.apps.documents.library.quotas import Quotas
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.schema import Connection, statement
from duly.core.errors import Conflict, Forbidden
from duly.features.audit.service import Audit
from duly.jobs.application import App

_CHUNK_SIZE = 2**20
_NOT_WRITABLE = (UnknownDocument, UnknownFolder, Forbidden)


class ImportTarget(NamedTuple):
    """Where files are imported to, and for which principal."""

    app: App
    principal: DocumentPrincipal
    connector: Connector
    file_store: FileStore
    records: ImportRecords
    folders: TargetFolders
    quotas: Quotas


class Importer:
    """Imports files of one account."""

    def __init__(self, remote: Remote, target: ImportTarget, options: ImportOptions) -> None:
        self.remote = remote
        self._target = target
        self._options = options

    async def import_file(self, file: RemoteFile) -> ImportedFile:
        """Import a file. One that changes during the download is imported as it is then."""
        for _ in range(self._options.max_downloads):
            record = (await self._target.records.read_files([file.remote_id])).get(file.remote_id)
            if _is_imported(record, file):
                return await self._file(file, None)
            folder_id = await self._folder_id(file, record)
            try:
                incoming = await self._download(file, folder_id)
                try:
                    return await self._file(file, incoming)
                except QuotaExceeded:
                    await self._discard(incoming)
                    raise
            except (DownloadDamaged, Conflict):
                file = replace(await self.remote.refresh(file), folders=file.folders)
        raise DownloadDamaged("no download matched the announced size and checksum")

    async def _folder_id(self, file: RemoteFile, record: FileRecord | None) -> UUID | None:
        """Return the folder for a file. A new version stays in the folder of its document."""
        document_id = None if record is None else record.document_id
        if document_id is not None and await self._becomes_version(file, document_id):
            return self._target.connector.node_id
        return await self._target.folders.folder_for(file.folders)

    async def _becomes_version(self, file: RemoteFile, document_id: UUID) -> bool:
        records = self._target.records
        async with records.session() as conn:
            try:
                await lock_document(conn, self._target.principal, document_id)
            except _NOT_WRITABLE:
                return False
            return not await records.is_shared(conn, file, document_id)

    async def _download(self, file: RemoteFile, folder_id: UUID | None) -> IncomingFile:
        if file.size is not None and file.size > self._options.max_file_size:
            raise _too_large()
        stream = _VerifiedDownload(self.remote, file, self._options.max_file_size)
        try:
            async with asyncio.timeout(self._options.file_timeout.total_seconds()):
                async with aclosing(stream.chunks()) as chunks:
                    saved = await self._target.file_store.save_original(chunks)
        except TimeoutError:
            raise DownloadDamaged("the download takes too long") from None
        name, connector = display_name(file.name), self._target.connector
        source = {
            "provider": connector.provider,
            "name": connector.name,
            "path": printable_path(file.path)[:500],
        }
        return IncomingFile(
            name,
            media_type(name, bytes(stream.head)),
            saved.sha256,
            saved.size,
            folder_id,
            {"imported_from": source},
        )

    async def _discard(self, incoming: IncomingFile) -> None:
        app, principal = self._target.app, self._target.principal
        async with app.tenant_session(principal.org_id) as conn:
            await schedule_file_removal(app, conn, principal, originals=[incoming.sha256])

    async def _file(self, file: RemoteFile, incoming: IncomingFile | None) -> ImportedFile:
        """File it, record it and start its extraction in one transaction."""
        records = self._target.records
        async with records.session() as conn:
            record = await records.lock_file(conn, file)
            if record is not None and record.document_id is not None and _is_imported(record, file):
                # Another import was faster, or an attempt of this job was lost before it could report.
                filed = FilingResult(record.document_id, record.version or 1, created=False, changed=False)
                state: ImportState = "new" if record.job_id == records.job_id else "unchanged"
            elif incoming is None:
                raise Conflict("its document was deleted meanwhile", fix="import it again")
            else:
                filed = await self._file_incoming(conn, file, incoming, record)
                state = _state(filed, record)
            await records.save_file(conn, file, filed)
        return ImportedFile.filed(file, filed, state)

    async def _file_incoming(
        self, conn: Connection, file: RemoteFile, incoming: IncomingFile, record: FileRecord | None
    ) -> FilingResult:
        app, principal, records = self._target.app, self._target.principal, self._target.records
        # Before any row, like every transaction that files: another order could deadlock.
        content = {"org_id": principal.org_id, "sha256": incoming.sha256}
        await conn.execute(statement("documents/lock_content"), content)
        document_id = None if record is None else record.document_id
        if document_id is not None and await records.is_shared(conn, file, document_id):
            document_id = None
        filed = await self._file_document(conn, incoming, document_id)
        if filed.changed:
            await Audit(app).record(
                conn,
                principal.org_id,
                "document.created" if filed.created else "document.version_added",
                str(filed.document_id),
                actor=principal.actor,
                sha256=incoming.sha256,
                connector_id=str(self._target.connector.connector_id),
            )
            if JOB_TYPE in app.registry:
                extraction = ExtractionTarget(filed.document_id, filed.version)
                await start_extraction(app, conn, principal, extraction, "fast")
        return filed

    async def _file_document(
        self, conn: Connection, incoming: IncomingFile, document_id: UUID | None
    ) -> FilingResult:
        """File a new version of the document; if it is deleted or not writable, a new document."""
        target = self._target
        for version_of in (document_id, None) if document_id else (None,):
            try:
                return await file_document(
                    conn,
                    target.principal,
                    incoming,
                    file_store=target.file_store,
                    quotas=target.quotas,
                    document_id=version_of,
                )
            except _NOT_WRITABLE:
                continue
        raise FolderUnavailable


class _VerifiedDownload:
    """A download that fails at its end, before it is stored, if size or checksum do not match."""

    def __init__(self, remote: Remote, file: RemoteFile, max_size: int) -> None:
        self._remote = remote
        self._file = file
        self._max_size = max_size
        self.head = bytearray()

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the file in chunks of about a megabyte."""
        size, checksum, buffer = 0, self._remote.checksum(), bytearray()
        async with self._remote.download(self._file) as pieces:
            async for piece in pieces:
                size += len(piece)
                if size > self._max_size:
                    raise _too_large()
                checksum.update(piece)
                buffer += piece
                if len(buffer) >= _CHUNK_SIZE:
                    yield self._chunk(buffer)
                    buffer = bytearray()
        self._verify(size, checksum.text())
        yield self._chunk(buffer)

    def _chunk(self, buffer: bytearray) -> bytes:
        self.head += buffer[: HEAD_SIZE - len(self.head)]
        return bytes(buffer)

    def _verify(self, size: int, checksum: str) -> None:
        file = self._file
        if (file.size is not None and size != file.size) or file.checksum not in (None, checksum):
            raise DownloadDamaged("the download does not match the announced size and checksum")
        if size == 0:
            raise FileRefused("the file is empty", "document.empty")


def _is_imported(record: FileRecord | None, file: RemoteFile) -> bool:
    return record is not None and record.revision == file.revision and record.document_id is not None


def _state(filed: FilingResult, record: FileRecord | None) -> ImportState:
    if filed.changed:
        return "new" if filed.created else "changed"
    return "there" if record is None else "unchanged"


def _too_large() -> FileRefused:
    return FileRefused("the file is larger than allowed", "import.too_large")
