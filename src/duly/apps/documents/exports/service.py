"""Start exports; only their requester sees the job and its files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from duly.apps.documents.exports.models import ExportFormat, ExportResult
from duly.apps.documents.folders.access import DocumentPrincipal, check_folders_visible
from duly.apps.documents.folders.job_subjects import private_subject
from duly.apps.documents.principal_service import PrincipalService
from duly.apps.documents.search.models import Filters
from duly.jobs.handle import Handle

EXPORT_DOCUMENTS = "export_documents"
EXPORT_SEARCH = "export_search"
MAX_DOCUMENT_IDS = 5_000


class Exports(PrincipalService):
    """The exports of a principal."""

    async def documents(
        self,
        principal: DocumentPrincipal,
        *,
        document_ids: Sequence[UUID] | None = None,
        node_id: UUID | None = None,
        doc_type: str | None = None,
        format: ExportFormat = "csv",  # noqa: A002 - the name of the parameter in the API
        bom: bool = False,
    ) -> Handle[ExportResult]:
        """Export documents by id, of a folder and those below it, of a type, or all visible ones."""
        return await self._enqueue(
            principal,
            EXPORT_DOCUMENTS,
            [node_id] if node_id else [],
            document_ids=document_ids and list(document_ids),
            node_id=node_id,
            doc_type=doc_type,
            format=format,
            bom=bom,
        )

    async def search(
        self,
        principal: DocumentPrincipal,
        query: str,
        filters: Filters | None = None,
        *,
        format: ExportFormat = "csv",  # noqa: A002
        bom: bool = False,
    ) -> Handle[ExportResult]:
        """Export the hits of a search, best first."""
        folder_ids = (filters and filters.nodes) or ()
        return await self._enqueue(
            principal, EXPORT_SEARCH, folder_ids, query=query, filters=filters, format=format, bom=bom
        )

    async def _enqueue(
        self, principal: DocumentPrincipal, job_type: str, folder_ids: Sequence[UUID], **payload: Any
    ) -> Handle[ExportResult]:
        async with self._session(principal) as conn:
            await check_folders_visible(conn, principal, folder_ids)
        job = self._app.registry.get(job_type).options(
            org_id=principal.org_id,
            actor=principal.actor,
            subject_id=private_subject(principal),
            idempotency_key=f"{job_type}:{uuid4()}",  # every call is another export
        )
        [handle] = await self._app.enqueue_many([job.call(**payload)])
        return handle
