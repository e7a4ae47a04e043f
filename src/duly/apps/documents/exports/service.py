"""Exports for the doors: asked for by a visitor, and for their eyes only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from duly.apps.documents.exports.models import Exported, Format
from duly.apps.documents.folders.access import DocumentPrincipal, check_folders_visible
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.search.models import Filters
from duly.jobs.application import App
from duly.jobs.handle import Handle

DOCUMENTS = "export_documents"
SEARCH = "export_search"
MOST_IDS = 5_000


class Exports:
    """What visitors have given out to them."""

    def __init__(self, app: App) -> None:
        self._app = app

    async def documents(
        self,
        who: DocumentPrincipal,
        *,
        document_ids: Sequence[UUID] | None = None,
        node_id: UUID | None = None,
        doc_type: str | None = None,
        format: Format = "csv",  # noqa: A002 - what it is called
        bom: bool = False,
    ) -> Handle[Exported]:
        """Documents: named ones, those of a folder and below, of a type, or all that they may see."""
        await self._check(who, [node_id] if node_id else [])
        asked = {
            "document_ids": document_ids and list(document_ids),
            "node_id": node_id,
            "doc_type": doc_type,
        }
        return await self._have_done(who, DOCUMENTS, **asked, format=format, bom=bom)

    async def search(
        self,
        who: DocumentPrincipal,
        query: str,
        filters: Filters | None = None,
        *,
        format: Format = "csv",  # noqa: A002
        bom: bool = False,
    ) -> Handle[Exported]:
        """What a search finds for them, the best first."""
        await self._check(who, (filters and filters.nodes) or ())
        return await self._have_done(who, SEARCH, query=query, filters=filters, format=format, bom=bom)

    async def _check(self, who: DocumentPrincipal, nodes: Sequence[UUID]) -> None:
        async with self._app.tenant_session(who.org_id) as conn:
            await check_folders_visible(conn, who, nodes)

    async def _have_done(self, who: DocumentPrincipal, name: str, **asked: Any) -> Handle[Exported]:
        job = self._app.registry.get(name).options(
            org_id=who.org_id,
            actor=who.actor,
            subject_id=private_subject(who),
            idempotency_key=f"{name}:{uuid4()}",  # asked for again later, it is another one
        )
        [handle] = await self._app.enqueue_many([job.call(**asked)])
        return handle
