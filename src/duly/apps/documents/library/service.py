"""The library of an org: add, list, read and change documents."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.apps.documents.consent import REMOTE_ENGINES
from duly.apps.documents.elements import Engine
from duly.apps.documents.errors import UnknownFile, unknown_document
from duly.apps.documents.extraction.service import ExtractionTarget, start_extraction
from duly.apps.documents.folders.access import (
    DocumentPrincipal,
    check_folder_writable,
    check_folders_visible,
    hidden_folders,
)
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.library.filing import (
    FilingResult,
    IncomingFile,
    checked_metadata,
    checked_name,
    file_document,
    lock_document,
)
from duly.apps.documents.library.media_types import HEAD_SIZE, media_type
from duly.apps.documents.library.quotas import check_quotas
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.models import Document, DocumentStatus, Version
from duly.apps.documents.options import DocumentOptions, options_of
from duly.apps.documents.principal_service import PrincipalService
from duly.apps.documents.schema import fetch_all, fetch_one, statement
from duly.apps.documents.search.index import rename
from duly.blobs import BlobNotFound
from duly.core.errors import ContractError
from duly.features.pagination import decode_cursor, page_size, split_page
from duly.jobs.application import App

MAX_FILE_SIZE = 512 * 2**20


@dataclass(frozen=True, slots=True)
class DocumentPage:
    """A page of documents, newest first, and the cursor of the next page."""

    documents: Sequence[Document]
    after: str | None


class DocumentLibrary(PrincipalService):
    """The documents that a principal may see or change, by the folders that they are in."""

    def __init__(self, app: App, options: DocumentOptions | None = None) -> None:
        super().__init__(app)
        self.options = options or options_of(app)

    async def file_store(self, org_id: UUID) -> FileStore:
        """Return the file store of an org."""
        return FileStore((await self._app.resources()).blobs, org_id)

    async def add(
        self,
        principal: DocumentPrincipal,
        name: str,
        chunks: AsyncIterator[bytes],
        *,
        node_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        document_id: UUID | None = None,
        engine: Engine | None = "fast",
    ) -> FilingResult:
        """Save a file as a document, or as a new version of one, and start its extraction."""
        _check_local(engine)
        name, metadata = checked_name(name), metadata or {}
        checked_metadata(metadata)
        # Refuse before anything is stored.
        async with self._session(principal) as conn:
            if document_id is None:
                await check_folder_writable(conn, principal, node_id)
            else:
                document = await lock_document(conn, principal, document_id)
                self.options.quotas.check_versions(document.version + 1)
            is_new = document_id is None
            await check_quotas(conn, principal.org_id, self.options.quotas, documents=is_new, size=1)
        stream = MeasuredStream(chunks)
        saved = await (await self.file_store(principal.org_id)).save_original(aiter(stream))
        incoming = IncomingFile(
            name, media_type(name, stream.head), saved.sha256, saved.size, node_id, metadata
        )
        return await self.file(principal, incoming, document_id=document_id, engine=engine)

    async def file(
        self,
        principal: DocumentPrincipal,
        incoming: IncomingFile,
        *,
        document_id: UUID | None = None,
        engine: Engine | None = "fast",
    ) -> FilingResult:
        """File a stored file, and start its extraction if it is new; remove it from the store on failure."""
        _check_local(engine)
        try:
            return await self._file(principal, incoming, document_id, engine)
        except Exception:
            async with self._session(principal) as conn:
                await schedule_file_removal(self._app, conn, principal, originals=[incoming.sha256])
            raise

    async def _file(
        self,
        principal: DocumentPrincipal,
        incoming: IncomingFile,
        document_id: UUID | None,
        engine: Engine | None,
    ) -> FilingResult:
        file_store, quotas = await self.file_store(principal.org_id), self.options.quotas
        async with self._session(principal) as conn:
            filed = await file_document(
                conn, principal, incoming, file_store=file_store, quotas=quotas, document_id=document_id
            )
            if filed.changed:
                action = "document.created" if filed.created else "document.version_added"
                await self._record(conn, principal, action, filed.document_id, sha256=incoming.sha256)
                if engine is not None:
                    target = ExtractionTarget(filed.document_id, filed.version)
                    await start_extraction(self._app, conn, principal, target, engine)
        return filed

    async def get(self, principal: DocumentPrincipal, document_id: UUID) -> Document:
        """Return a document."""
        async with self._session(principal) as conn:
            hidden = await hidden_folders(conn, principal)
            values = {"org_id": principal.org_id, "document_id": document_id, "hidden_folders": hidden}
            row = await fetch_one(conn, "documents/read", values)
        if row is None:
            raise unknown_document()
        return Document.model_validate(row[0])

    async def list(
        self,
        principal: DocumentPrincipal,
        *,
        node_id: UUID | None = None,
        in_root: bool = False,
        doc_type: str | None = None,
        status: DocumentStatus | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> DocumentPage:
        """Return a page of documents: of a folder, of the root, or of all folders.

        A folder that does not exist, or is hidden, raises.
        """
        size = page_size(limit)
        values: dict[str, Any] = {
            "org_id": principal.org_id,
            "node_id": node_id,
            "in_root": in_root,
            "doc_type": doc_type,
            "status": status,
            "after": decode_cursor(after, UUID),
            "limit": size + 1,
        }
        async with self._session(principal) as conn:
            await check_folders_visible(conn, principal, [node_id] if node_id else [])
            values["hidden_folders"] = await hidden_folders(conn, principal)
            rows = await fetch_all(conn, "documents/list", values)
        page, after = split_page(rows, size, lambda row: row[0]["document_id"])
        return DocumentPage([Document.model_validate(row[0]) for row in page], after)

    async def versions(
        self, principal: DocumentPrincipal, document_id: UUID, *, before: int | None = None, limit: int = 50
    ) -> Sequence[Version]:
        """Return the versions of a document, newest first; with `before`, those before that version."""
        values = {"org_id": principal.org_id, "document_id": document_id, "before": before}
        values["limit"] = page_size(limit)
        await self.get(principal, document_id)
        async with self._session(principal) as conn:
            return [Version.model_validate(row[0]) for row in await fetch_all(conn, "versions/list", values)]

    async def content(
        self, principal: DocumentPrincipal, document_id: UUID, version: int | None = None
    ) -> tuple[Version, AsyncIterator[bytes]]:
        """Return a version, by default the current one, and its file in chunks."""
        await self.get(principal, document_id)
        values = {"org_id": principal.org_id, "document_id": document_id, "version": version}
        async with self._session(principal) as conn:
            row = await fetch_one(conn, "versions/read", values)
        if row is None:
            raise unknown_version()
        found = Version.model_validate(row[0])
        return found, (await self.file_store(principal.org_id)).read_original(found.sha256)

    async def derived(self, principal: DocumentPrincipal, document_id: UUID, name: str) -> bytes:
        """Return a file that was derived from a document."""
        await self.get(principal, document_id)
        try:
            return await (await self.file_store(principal.org_id)).read_derived(document_id, name)
        except (BlobNotFound, ValueError):
            raise UnknownFile(
                "no such file", field="name", fix="use `derived` of the extraction's result"
            ) from None

    async def change(
        self,
        principal: DocumentPrincipal,
        document_id: UUID,
        *,
        name: str | None = None,
        move_to: UUID | None = None,
        moves: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Rename a document, move it to a folder (`moves`; None is the root), or replace its metadata."""
        name = None if name is None else checked_name(name)
        values = {
            "org_id": principal.org_id,
            "document_id": document_id,
            "name": name,
            "moves": moves,
            "node_id": move_to,
            "metadata": None if metadata is None else checked_metadata(metadata),
        }
        changes: dict[str, Any] = {} if name is None else {"name": name}
        changes |= {"node_id": str(move_to or "root")} if moves else {}
        changes |= {} if metadata is None else {"metadata": sorted(metadata)}
        async with self._session(principal) as conn:
            document = await lock_document(conn, principal, document_id)
            if moves:
                await check_folder_writable(conn, principal, move_to, document.access)
            await conn.execute(statement("documents/update"), values)
            if name is not None:
                await rename(conn, principal.org_id, document_id, name)
            await self._record(conn, principal, "document.changed", document_id, **changes)
        return await self.get(principal, document_id)


def unknown_version() -> UnknownFile:
    """Return the error for a version that does not exist, or whose file is gone."""
    return UnknownFile("no such version", field="version", fix="list the versions of the document")


def _check_local(engine: Engine | None) -> None:
    if engine in REMOTE_ENGINES:
        fix = "add the file first, then start the extraction with consent"
        raise ContractError(f"{engine} sends the file to a service", field="engine", fix=fix)


class MeasuredStream:
    """A stream that keeps its first bytes, and raises if it is longer or shorter than allowed."""

    def __init__(
        self,
        chunks: AsyncIterator[bytes],
        max_size: int = MAX_FILE_SIZE,
        min_size: int = 1,
        field: str = "file",
    ) -> None:
        self._chunks = chunks
        self._max_size = max_size
        self._min_size = min_size
        self._field = field
        self.head = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._chunks:
            size += len(chunk)
            if size > self._max_size:
                fix = f"send at most {self._max_size} bytes"
                raise ContractError(f"more than {self._max_size} bytes", field=self._field, fix=fix)
            if len(self.head) < HEAD_SIZE:
                self.head += chunk[: HEAD_SIZE - len(self.head)]
            yield chunk
        if size < self._min_size:
            message = f"only {size} bytes" if size else "empty"
            raise ContractError(message, field=self._field, fix=f"send at least {self._min_size} bytes")
