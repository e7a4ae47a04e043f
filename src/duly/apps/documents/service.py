"""`app.documents`: everything that principals do with documents."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from uuid import UUID

from duly.apps.documents.classification.service import ClassificationService
from duly.apps.documents.consent import REMOTE_ENGINES
from duly.apps.documents.elements import Engine
from duly.apps.documents.errors import UnknownFile
from duly.apps.documents.exports.service import Exports
from duly.apps.documents.extraction.service import (
    ExtractionTarget,
    StartedExtraction,
    list_extractions,
    read_current_extraction,
    start_extraction,
)
from duly.apps.documents.folders.access import DocumentPrincipal, check_folders_visible
from duly.apps.documents.folders.service import Folders
from duly.apps.documents.imports.service import Connectors
from duly.apps.documents.library.filing import lock_document
from duly.apps.documents.library.overview import (
    DocumentOverview,
    RecentExtraction,
    read_overview,
    recent_extractions,
)
from duly.apps.documents.library.removal import remove_document
from duly.apps.documents.library.service import DocumentLibrary
from duly.apps.documents.models import Extraction, IndexedPassage
from duly.apps.documents.schema import fetch_all
from duly.apps.documents.search.models import Filters, SearchResult
from duly.apps.documents.search.search import search
from duly.apps.documents.uploads.service import Uploads
from duly.deprecated_names import DeprecatedName
from duly.features.pagination import page_size


class Documents(DocumentLibrary):
    """The documents of an application."""

    classes = DeprecatedName("classification")
    lately = DeprecatedName("recent_extractions")
    standing = DeprecatedName("overview")
    vault = DeprecatedName("file_store")

    @cached_property
    def folders(self) -> Folders:
        """Manage folders and the access to them."""
        return Folders(self._app)

    @cached_property
    def uploads(self) -> Uploads:
        """Upload large files in parts."""
        return Uploads(self._app, self)

    @cached_property
    def classification(self) -> ClassificationService:
        """Classify documents, confirm their types, and train the org's classifier."""
        return ClassificationService(self._app)

    @cached_property
    def connectors(self) -> Connectors:
        """Import documents from accounts at cloud storage providers."""
        return Connectors(self._app)

    @cached_property
    def exports(self) -> Exports:
        """Export documents and search results to files."""
        return Exports(self._app)

    async def extract(
        self,
        principal: DocumentPrincipal,
        document_id: UUID,
        engine: Engine = "fast",
        *,
        consent: bool = False,
    ) -> StartedExtraction:
        """Start an extraction of the current version; a remote engine needs `consent` to send the file."""
        pages = (await self.get(principal, document_id)).page_count
        async with self._session(principal) as conn:
            document = await lock_document(conn, principal, document_id)
            started = await start_extraction(
                self._app,
                conn,
                principal,
                ExtractionTarget(document_id, document.version, pages),
                engine,
                consent=consent,
                cents_per_page=self.options.cents_per_page,
            )
            if started.created:
                await self._record(
                    conn,
                    principal,
                    "document.extraction_asked",
                    document_id,
                    engine=engine,
                    consent=consent and engine in REMOTE_ENGINES,
                    version=document.version,
                )
            return started

    async def extractions(
        self, principal: DocumentPrincipal, document_id: UUID, *, before: UUID | None = None, limit: int = 50
    ) -> Sequence[Extraction]:
        """Return the extractions of a document, newest first; with `before`, those before that one."""
        size = page_size(limit)
        await self.get(principal, document_id)
        async with self._session(principal) as conn:
            return await list_extractions(conn, principal.org_id, document_id, before, size)

    async def elements(self, principal: DocumentPrincipal, document_id: UUID) -> tuple[UUID, bytes]:
        """Return the extraction that the document's text is from, and its pages with elements as JSON."""
        extraction_id, name = await self._current_extraction(principal, document_id)
        try:
            return extraction_id, await self.derived(principal, document_id, name)
        except UnknownFile:
            newer_id, name = await self._current_extraction(principal, document_id)
            if newer_id == extraction_id:
                raise
            # A newer extraction has replaced the file between the two reads.
            return newer_id, await self.derived(principal, document_id, name)

    async def _current_extraction(self, principal: DocumentPrincipal, document_id: UUID) -> tuple[UUID, str]:
        await self.get(principal, document_id)
        async with self._session(principal) as conn:
            extraction = await read_current_extraction(conn, principal.org_id, document_id)
        if extraction is None or not extraction.result_json:
            raise UnknownFile(
                "the document has no extracted text", field="document_id", fix="start an extraction"
            )
        return extraction.extraction_id, str(extraction.result_json["derived"])

    async def passages(
        self, principal: DocumentPrincipal, document_id: UUID, *, start: int = 0, limit: int = 50
    ) -> Sequence[IndexedPassage]:
        """Return the indexed passages of a document in order, from the position `start`."""
        await self.get(principal, document_id)
        values = {"org_id": principal.org_id, "document_id": document_id}
        async with self._session(principal) as conn:
            rows = await fetch_all(
                conn, "passages/list", {**values, "start": start, "limit": page_size(limit)}
            )
        fields = tuple(IndexedPassage.model_fields)
        return [IndexedPassage.model_validate(dict(zip(fields, row, strict=True))) for row in rows]

    async def search(
        self,
        principal: DocumentPrincipal,
        query: str,
        filters: Filters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        group: bool = False,
    ) -> SearchResult:
        """Return the passages that match a query, best first; with `group` the best one of each document.

        A folder among the filters that does not exist, or is hidden, raises.
        """
        filters = filters or Filters()
        async with self._session(principal) as conn:
            await check_folders_visible(conn, principal, filters.nodes or ())
            return await search(conn, principal, query, filters, limit=limit, offset=offset, group=group)

    async def overview(self, principal: DocumentPrincipal) -> DocumentOverview:
        """Count the documents to review, the extractions by status, and the stored documents and bytes."""
        async with self._session(principal) as conn:
            return await read_overview(conn, principal, self.options.quotas)

    async def recent_extractions(
        self, principal: DocumentPrincipal, *, limit: int = 50
    ) -> Sequence[RecentExtraction]:
        """Return active extractions, then those of the last seven days that did not succeed."""
        size = page_size(limit)
        async with self._session(principal) as conn:
            return await recent_extractions(conn, principal, size)

    async def remove(
        self, principal: DocumentPrincipal, document_id: UUID, *, reason: str | None = None
    ) -> None:
        """Delete a document and everything that was derived from it."""
        await remove_document(self._app, principal, document_id, reason=reason)
