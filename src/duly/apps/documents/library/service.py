"""The documents of an org: brought in, listed, read, changed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from duly.apps.documents.elements import Engine
from duly.apps.documents.errors import UnknownFile, unknown_document
from duly.apps.documents.extraction.service import REMOTE_ENGINES, ExtractionTarget, start_extraction
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
from duly.apps.documents.library.media_types import HEAD, media_type
from duly.apps.documents.library.quotas import check_room
from duly.apps.documents.library.removal import schedule_file_removal
from duly.apps.documents.models import Document, DocumentStatus, Version
from duly.apps.documents.options import DocumentOptions, options_of
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.apps.documents.search.index import rename
from duly.blobs import BlobNotFound
from duly.core.errors import ContractError
from duly.features.audit.service import Audit
from duly.features.pagination import decode_cursor, encode_cursor, page_size
from duly.jobs.application import App

BYTES_MAX = 512 * 2**20
"""The largest file that is taken."""


class DocumentPage(NamedTuple):
    """Some documents, the newest first; `after` asks for those that follow, and is None at the end."""

    documents: Sequence[Document]
    after: str | None


class Library:
    """What visitors do with documents."""

    def __init__(self, app: App, options: DocumentOptions | None = None) -> None:
        self.options = options or options_of(app)
        self._app = app
        self._audit = Audit(app)

    async def file_store(self, org_id: UUID) -> FileStore:
        """Where the files of an org are."""
        return FileStore((await self._app.resources()).blobs, org_id)

    async def add(
        self,
        who: DocumentPrincipal,
        name: str,
        chunks: AsyncIterator[bytes],
        *,
        node_id: UUID | None = None,
        metadata: Mapping[str, Any] | None = None,
        document_id: UUID | None = None,
        engine: Engine | None = "fast",
    ) -> FilingResult:
        """Keep a file as a document, or as a new version of one, and have it read by a local engine."""
        _check_engine(engine)
        shown, facts = checked_name(name), metadata or {}
        checked_metadata(facts)
        async with self._app.tenant_session(who.org_id) as conn:  # refused before anything is kept
            await self._check_room(conn, who, node_id, document_id)
        stream = Measured(chunks)
        file_store = await self.file_store(who.org_id)
        kept = await file_store.save_original(aiter(stream))
        kind = media_type(shown, stream.head)
        incoming = IncomingFile(shown, kind, kept.sha256, kept.size, node_id, facts)
        return await self.file(who, incoming, document_id=document_id, engine=engine)

    async def _check_room(
        self, conn: Connection, who: DocumentPrincipal, node_id: UUID | None, document_id: UUID | None
    ) -> None:
        quotas = self.options.quotas
        if document_id is None:
            await check_folder_writable(conn, who, node_id)
        else:
            quotas.check_versions((await lock_document(conn, who, document_id)).version + 1)
        await check_room(conn, who.org_id, quotas, documents=document_id is None, size=1)

    async def file(
        self,
        who: DocumentPrincipal,
        incoming: IncomingFile,
        *,
        document_id: UUID | None = None,
        engine: Engine | None = "fast",
    ) -> FilingResult:
        """File what is in the file_store, and have it read if it is new."""
        _check_engine(engine)
        try:
            return await self._file(who, incoming, document_id, engine)
        except Exception:
            await self._give_up(who, incoming.sha256)
            raise

    async def _give_up(self, who: DocumentPrincipal, sha256: str) -> None:
        """What is in the file_store and was not filed is cleared away, unless another document is it."""
        async with self._app.tenant_session(who.org_id) as conn:
            await schedule_file_removal(self._app, conn, who, originals=[sha256])

    async def _file(
        self, who: DocumentPrincipal, incoming: IncomingFile, document_id: UUID | None, engine: Engine | None
    ) -> FilingResult:
        file_store = await self.file_store(who.org_id)
        async with self._app.tenant_session(who.org_id) as conn:
            filed = await file_document(
                conn,
                who,
                incoming,
                file_store=file_store,
                document_id=document_id,
                quotas=self.options.quotas,
            )
            if filed.changed:
                action = "document.created" if filed.created else "document.version_added"
                await self._note(conn, who, action, filed.document_id, sha256=incoming.sha256)
                if engine is not None:
                    await start_extraction(
                        self._app, conn, who, ExtractionTarget(filed.document_id, filed.version), engine
                    )
        return filed

    async def get(self, who: DocumentPrincipal, document_id: UUID) -> Document:
        """A document that they may see."""
        async with self._app.tenant_session(who.org_id) as conn:
            values = {
                "org_id": who.org_id,
                "document_id": document_id,
                "hidden_folders": await hidden_folders(conn, who),
            }
            found = await fetch_one(conn, "documents/read", values)
        if found is None:
            raise unknown_document()
        return Document.model_validate(found[0])

    async def list(
        self,
        who: DocumentPrincipal,
        *,
        node_id: UUID | None = None,
        in_root: bool = False,
        doc_type: str | None = None,
        status: DocumentStatus | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> DocumentPage:
        """A page of the documents that they may see: of a folder, of the root, or of everywhere.

        A folder that is unknown, or closed to them, raises.
        """
        size = page_size(limit)
        values: dict[str, Any] = {"org_id": who.org_id, "node_id": node_id, "in_root": in_root}
        values |= {
            "doc_type": doc_type,
            "status": status,
            "after": decode_cursor(after, UUID),
            "limit": size + 1,
        }
        async with self._app.tenant_session(who.org_id) as conn:
            await check_folders_visible(conn, who, [node_id] if node_id else [])
            found = await fetch_all(
                conn, "documents/list", {**values, "hidden_folders": await hidden_folders(conn, who)}
            )
        documents = [Document.model_validate(row[0]) for row in found[:size]]
        return DocumentPage(
            documents, encode_cursor(documents[-1].document_id) if len(found) > size else None
        )

    async def versions(
        self, who: DocumentPrincipal, document_id: UUID, *, before: int | None = None, limit: int = 50
    ) -> Sequence[Version]:
        """The files that a document has been, the newest first, or those before a version."""
        values = {"org_id": who.org_id, "document_id": document_id, "before": before}
        values["limit"] = page_size(limit)
        await self.get(who, document_id)
        async with self._app.tenant_session(who.org_id) as conn:
            return [Version.model_validate(row[0]) for row in await fetch_all(conn, "versions/list", values)]

    async def content(
        self, who: DocumentPrincipal, document_id: UUID, version: int | None = None
    ) -> tuple[Version, AsyncIterator[bytes]]:
        """The file of a version, the current one if none is named."""
        await self.get(who, document_id)
        values = {"org_id": who.org_id, "document_id": document_id, "version": version}
        async with self._app.tenant_session(who.org_id) as conn:
            row = await fetch_one(conn, "versions/read", values)
        if row is None:
            raise UnknownFile("no such version", field="version", fix="see the versions of the document")
        found = Version.model_validate(row[0])
        return found, (await self.file_store(who.org_id)).read_original(found.sha256)

    async def derived(self, who: DocumentPrincipal, document_id: UUID, name: str) -> bytes:
        """What was made of a document, by its name."""
        await self.get(who, document_id)
        try:
            return await (await self.file_store(who.org_id)).read_derived(document_id, name)
        except (BlobNotFound, ValueError):
            raise UnknownFile("no such file", field="name", fix="see what the extraction has made") from None

    async def change(
        self,
        who: DocumentPrincipal,
        document_id: UUID,
        *,
        name: str | None = None,
        move_to: UUID | None = None,
        moves: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> Document:
        """Another name, another folder (`moves`; None is the root) or other metadata."""
        values = {
            "org_id": who.org_id, "document_id": document_id,
            "name": None if name is None else checked_name(name), "moves": moves, "node_id": move_to,
            "metadata": None if metadata is None else checked_metadata(metadata),
        }  # fmt: skip
        async with self._app.tenant_session(who.org_id) as conn:
            found = await lock_document(conn, who, document_id)
            if moves:
                await check_folder_writable(conn, who, move_to, found.access)
            await conn.execute(statement("documents/change"), values)
            if values["name"] is not None:
                await rename(conn, who.org_id, document_id, str(values["name"]))
            told: dict[str, Any] = {"name": values["name"]} if name is not None else {}
            told |= {"node_id": str(move_to) if move_to else "root"} if moves else {}
            told |= {"metadata": sorted(metadata)} if metadata is not None else {}
            await self._note(conn, who, "document.changed", document_id, **told)
        return await self.get(who, document_id)

    async def _note(
        self, conn: Any, who: DocumentPrincipal, action: str, document_id: UUID, **detail: Any
    ) -> None:
        await self._audit.record(conn, who.org_id, action, str(document_id), actor=who.actor, **detail)


def _check_engine(engine: Engine | None) -> None:
    if engine in REMOTE_ENGINES:
        fix = "file it first, then ask for the extraction with consent"
        raise ContractError(f"{engine} sends it elsewhere", field="engine", fix=fix)


class Measured:
    """A stream that keeps its beginning, and ends with an error where it gets too long, or ends too soon."""

    def __init__(
        self, chunks: AsyncIterator[bytes], most: int = BYTES_MAX, least: int = 1, field: str = "file"
    ) -> None:
        self._chunks = chunks
        self._most = most
        self._least = least
        self._field = field
        self.head = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._chunks:
            size += len(chunk)
            if size > self._most:
                fix = f"send at most {self._most} bytes"
                raise ContractError(f"more than {self._most} bytes", field=self._field, fix=fix)
            if len(self.head) < HEAD:
                self.head += chunk[: HEAD - len(self.head)]
            yield chunk
        if size < self._least:
            said = "empty" if not size else f"only {size} bytes"
            raise ContractError(said, field=self._field, fix=f"send at least {self._least} bytes")
