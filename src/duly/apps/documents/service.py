"""Documents for the doors: everything that visitors do with them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from uuid import UUID

from duly.apps.documents.classification.service import ClassificationService
from duly.apps.documents.elements import Engine
from duly.apps.documents.errors import UnknownFile
from duly.apps.documents.exports.service import Exports
from duly.apps.documents.extraction.service import (
    REMOTE_ENGINES,
    ExtractionTarget,
    StartedExtraction,
    list_extractions,
    read_current_extraction,
    start_extraction,
)
from duly.apps.documents.folders.access import DocumentPrincipal, check_folders_visible
from duly.apps.documents.folders.service import Folders
from duly.apps.documents.imports.service import Connectors
from duly.apps.documents.library import removal
from duly.apps.documents.library.filing import lock_document
from duly.apps.documents.library.overview import Reading, Standing, lately, standing
from duly.apps.documents.library.service import Library
from duly.apps.documents.models import Extraction, IndexedPassage
from duly.apps.documents.schema import fetch_all
from duly.apps.documents.search.models import Filters, SearchResult
from duly.apps.documents.search.search import search
from duly.apps.documents.uploads.service import Uploads
from duly.features.pagination import page_size


class Documents(Library):
    """The documents of an application."""

    @cached_property
    def folders(self) -> Folders:
        """Folders, and whom they are for."""
        return Folders(self._app)

    @cached_property
    def uploads(self) -> Uploads:
        """Files that come in parts."""
        return Uploads(self._app, self)

    @cached_property
    def classes(self) -> ClassificationService:
        """What documents are, and where they belong."""
        return ClassificationService(self._app)

    @cached_property
    def connectors(self) -> Connectors:
        """Accounts elsewhere that documents are brought in from."""
        return Connectors(self._app)

    @cached_property
    def exports(self) -> Exports:
        """Documents that are given out."""
        return Exports(self._app)

    async def extract(
        self, who: DocumentPrincipal, document_id: UUID, engine: Engine = "fast", *, consent: bool = False
    ) -> StartedExtraction:
        """Have the current version read; `consent` allows engines that send it elsewhere to do so."""
        pages = (await self.get(who, document_id)).page_count
        async with self._app.tenant_session(who.org_id) as conn:
            found = await lock_document(conn, who, document_id)
            target = ExtractionTarget(document_id, found.version, pages)
            begun = await start_extraction(
                self._app, conn, who, target, engine,
                consent=consent, cents_per_page=self.options.cents_per_page,
            )  # fmt: skip
            if begun.created:
                said = {
                    "engine": engine,
                    "consent": consent and engine in REMOTE_ENGINES,
                    "version": found.version,
                }
                await self._note(conn, who, "document.extraction_asked", document_id, **said)
            return begun

    async def extractions(
        self, who: DocumentPrincipal, document_id: UUID, *, before: UUID | None = None, limit: int = 50
    ) -> Sequence[Extraction]:
        """What was, and is being, read out of a document; the newest first, or those before another."""
        size = page_size(limit)
        await self.get(who, document_id)
        async with self._app.tenant_session(who.org_id) as conn:
            return await list_extractions(conn, who.org_id, document_id, before, size)

    async def elements(self, who: DocumentPrincipal, document_id: UUID) -> tuple[UUID, bytes]:
        """The extraction that its text is from, and the pages that it has left, as JSON."""
        found, name = await self._current(who, document_id)
        try:
            return found, await self.derived(who, document_id, name)
        except UnknownFile:
            newer, name = await self._current(who, document_id)
            if newer == found:
                raise
            return newer, await self.derived(who, document_id, name)  # it was replaced meanwhile

    async def _current(self, who: DocumentPrincipal, document_id: UUID) -> tuple[UUID, str]:
        await self.get(who, document_id)
        async with self._app.tenant_session(who.org_id) as conn:
            found = await read_current_extraction(conn, who.org_id, document_id)
        if found is None or not found.result_json:
            raise UnknownFile("it has not been read", field="document_id", fix="ask for an extraction")
        return found.extraction_id, str(found.result_json["derived"])

    async def passages(
        self, who: DocumentPrincipal, document_id: UUID, *, start: int = 0, limit: int = 50
    ) -> Sequence[IndexedPassage]:
        """What search finds of a document, in its order, from one passage on."""
        await self.get(who, document_id)
        values = {"org_id": who.org_id, "document_id": document_id, "start": start, "limit": page_size(limit)}
        async with self._app.tenant_session(who.org_id) as conn:
            found = await fetch_all(conn, "passages/list", values)
        fields = tuple(IndexedPassage.model_fields)
        return [IndexedPassage.model_validate(dict(zip(fields, row, strict=True))) for row in found]

    async def search(
        self,
        who: DocumentPrincipal,
        query: str,
        filters: Filters | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        group: bool = False,
    ) -> SearchResult:
        """The passages that fit a query, the best first; with `group` the best of each document.

        A folder among the filters that is unknown, or closed to them, raises.
        """
        asked = filters or Filters()
        async with self._app.tenant_session(who.org_id) as conn:
            await check_folders_visible(conn, who, asked.nodes or ())
            return await search(conn, who, query, asked, limit=limit, offset=offset, group=group)

    async def standing(self, who: DocumentPrincipal) -> Standing:
        """How the documents of the org stand: what waits for review, what is being read, what is kept."""
        async with self._app.tenant_session(who.org_id) as conn:
            return await standing(conn, who, self.options.quotas)

    async def lately(self, who: DocumentPrincipal, *, limit: int = 50) -> Sequence[Reading]:
        """The readings under way, then those of the last seven days that did not end well."""
        size = page_size(limit)
        async with self._app.tenant_session(who.org_id) as conn:
            return await lately(conn, who, size)

    async def remove(self, who: DocumentPrincipal, document_id: UUID, *, reason: str | None = None) -> None:
        """Delete a document and everything that was made of it."""
        await removal.remove(self._app, who, document_id, reason=reason)
