"""The job type `extract_document`: a partial result per page; the text is published when all are read."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from duly.apps.documents.consent import REMOTE_ENGINES, require_consent
from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines import RemoteUnavailable, Unstructured, open_file
from duly.apps.documents.extraction import service
from duly.apps.documents.extraction.publish import publish_pages
from duly.apps.documents.extraction.service import JOB_TYPE, cost_in_cents
from duly.apps.documents.folders.access import DocumentPrincipal, read_only_folders
from duly.apps.documents.folders.job_subjects import check_subject, document_subject, subject_from_document
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.models import Document, Extraction
from duly.apps.documents.options import DocumentOptions
from duly.apps.documents.schema import fetch_one, statement
from duly.core.outcome import Cancel, Fail, Retry
from duly.core.policy import Category
from duly.jobs.application import App
from duly.jobs.failure_callbacks import Failure
from duly.worker.context.context import Context

_TIMEOUT = timedelta(hours=6)
_VERSION_CHECK_INTERVAL = 10
"""Pages between two checks that the document still has this version."""


def declare(app: App, options: DocumentOptions) -> None:
    """Declare the job type, and the adapter that keeps extractions consistent with their jobs."""

    @app.job(
        JOB_TYPE,
        category=Category.DOCUMENT,
        timeout=_TIMEOUT,
        subject=subject_from_document,
        on_failed=_settle_failed,
    )
    async def extract_document(ctx: Context, document_id: UUID, engine: Engine = "fast") -> dict[str, Any]:
        """Extract a document: pages are partial results, passages are published when all are read."""
        return await _ExtractionAttempt(app, options, ctx).run(document_id, engine)

    app.adapt(service.ExtractionAdapter())


async def _settle_failed(failure: Failure, conn: Any) -> None:
    await service.settle(conn, failure.job.org_id, failure.job.job_id, failure.job)


class _ExtractionAttempt:
    """One attempt of the job."""

    def __init__(self, app: App, options: DocumentOptions, ctx: Context) -> None:
        self._app = app
        self._options = options
        self._ctx = ctx
        self._principal = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
        self._pages_read = ctx.job.partial_count

    async def run(self, document_id: UUID, engine: Engine) -> dict[str, Any]:
        """Extract the document; record a cancellation at once, not only when the job has ended."""
        try:
            return await self._extract(document_id, engine)
        except Cancel as cancel:
            job = self._ctx.job
            async with self._ctx.session() as conn:
                await service.record_cancellation(
                    conn, job.org_id, job.job_id, cancel.reason, self._pages_read
                )
            raise

    async def _extract(self, document_id: UUID, engine: Engine) -> dict[str, Any]:
        ctx = self._ctx
        document, extraction = await self._start(document_id, engine)
        if document.version != extraction.version:
            raise Cancel("the document has a newer version")
        file_store = FileStore((await self._app.resources()).blobs, ctx.job.org_id)
        try:
            async with _download(file_store, document) as path:
                pages = await self._read_pages(path, document, extraction)
        except UnreadableFile as error:
            raise Fail(error.message, code=error.code) from error
        except RemoteUnavailable as error:
            raise Retry(str(error), after=error.retry_after, code="remote.unavailable") from error
        ctx.check_canceled()
        cents = cost_in_cents(len(pages), self._cents_per_page(extraction))
        return await publish_pages(self._app, ctx, file_store, document, extraction, pages, cents=cents)

    async def _start(self, document_id: UUID, engine: Engine) -> tuple[Document, Extraction]:
        job = self._ctx.job
        async with self._ctx.session() as conn:
            values = {
                "org_id": job.org_id,
                "document_id": document_id,
                "hidden_folders": await read_only_folders(conn, self._principal),
            }
            row = await fetch_one(conn, "documents/read", values)
            if row is None:
                raise Fail("no such document, or you may not change it", code="document.unknown")
            document = Document.model_validate(row[0])
            check_subject(job.subject_id, document_subject(document_id))
            extraction = await service.record_start(
                conn, job.org_id, document_id, document.version, job.job_id, engine
            )
        return document, extraction

    async def _read_pages(
        self, path: Path, document: Document, extraction: Extraction
    ) -> Sequence[PageElements]:
        ctx, limits = self._ctx, self._options.limits
        is_remote = extraction.engine in REMOTE_ENGINES
        if is_remote and extraction.estimated_pages is None:
            async with open_file(path, document.name, "fast", limits) as reader:
                await self._record_estimate(extraction, reader.pages)
        remote = self._check_remote(extraction) if is_remote else None
        async with open_file(path, document.name, extraction.engine, limits, remote=remote) as reader:
            await self._record_estimate(extraction, reader.pages)
            budget = _TextBudget(limits.whole_text_max)
            if self._pages_read:  # by an earlier attempt
                for page in (await ctx.results()).values():
                    budget.spend(PageElements.model_validate(page))
            missing = [chunk async for chunk in ctx.chunks(range(1, reader.pages + 1))]
            pages = reader.read([chunk.item for chunk in missing])
            for index, chunk in enumerate(missing):
                if index % _VERSION_CHECK_INTERVAL == 0:
                    await self._check_version(document)
                # Outside of the chunk: an error here fails the attempt, not only the page.
                page = await anext(pages)
                budget.spend(page)
                async with chunk:
                    chunk.result = page.model_dump(mode="json", exclude_none=True)
                self._pages_read += 1
        results = await ctx.results()
        return [PageElements.model_validate(results.pop(key)) for key in sorted(results, key=int)]

    async def _check_version(self, document: Document) -> None:
        """Cancel if the document was deleted or replaced: pages of a remote engine cost money."""
        self._ctx.check_canceled()
        ids = {"org_id": self._principal.org_id, "document_id": document.document_id}
        async with self._ctx.session() as conn:
            row = await fetch_one(conn, "documents/version_of", ids)
        if row is None or row[0] != document.version:
            raise Cancel("the document was deleted, or has a newer version")

    def _check_remote(self, extraction: Extraction) -> Unstructured:
        """Return the remote service, or fail without consent or without a configured service."""
        require_consent(extraction.consent_given_at is not None, "extraction", "the file")
        remote = self._options.remote()
        if remote is None:
            message = "no Unstructured service is configured"
            raise Fail(message, code="extraction.not_configured", blocked=True)
        return remote

    async def _record_estimate(self, extraction: Extraction, pages: int) -> None:
        """Record the pages and their cost before the first page is sent."""
        values = {
            "org_id": self._principal.org_id,
            "extraction_id": extraction.extraction_id,
            "pages": pages,
            "cents": cost_in_cents(pages, self._cents_per_page(extraction)),
        }
        async with self._ctx.session() as conn:
            await conn.execute(statement("extractions/set_estimate"), values)

    def _cents_per_page(self, extraction: Extraction) -> float:
        return self._options.cents_per_page.get(extraction.engine, 0.0)


class _TextBudget:
    """The number of characters that the pages of a document may have together."""

    def __init__(self, max_characters: int) -> None:
        self._max_characters = max_characters
        self._remaining = max_characters

    def spend(self, page: PageElements) -> None:
        """Subtract the text of a page, or raise if there is not enough left."""
        self._remaining -= sum(len(element.text) for element in page.elements)
        if self._remaining < 0:
            raise UnreadableFile(
                "document.too_large", f"the text has more than {self._max_characters:,} characters"
            )


@asynccontextmanager
async def _download(file_store: FileStore, document: Document) -> AsyncIterator[Path]:
    """Download the file of a document into a temporary directory; its own name is not used."""
    with tempfile.TemporaryDirectory(prefix="duly-document-") as folder:
        path = Path(folder, "file")
        with path.open("wb") as file:  # noqa: ASYNC230 - written in a thread
            async for chunk in file_store.read_original(document.sha256):
                await asyncio.to_thread(file.write, chunk)
        yield path
