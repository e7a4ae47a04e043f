"""The job type `extract_document`: page by page, each a partial result; published at once, at the end."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines import RemoteUnavailable, Unstructured, open_file
from duly.apps.documents.extraction import store
from duly.apps.documents.extraction.publish import published
from duly.apps.documents.extraction.service import JOB_TYPE, REMOTE_ENGINES, cost
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
_EVERY = 10
"""Pages between two looks at the document."""


def declare(app: App, options: DocumentOptions) -> None:
    """Add the job type, and the adapter that keeps its records true, to an application."""

    @app.job(
        JOB_TYPE,
        category=Category.DOCUMENT,
        timeout=_TIMEOUT,
        subject=subject_from_document,
        on_failed=_failed,
    )
    async def extract_document(ctx: Context, document_id: UUID, engine: Engine = "fast") -> dict[str, Any]:
        """Read a document: its pages are partial results, its passages are found when all are read."""
        return await _Extraction(app, options, ctx).run(document_id, engine)

    app.adapt(store.Extractions())


async def _failed(failure: Failure, conn: Any) -> None:
    await store.settle(conn, failure.job.org_id, failure.job.job_id, failure.job)


class _Extraction:
    """One attempt."""

    def __init__(self, app: App, options: DocumentOptions, ctx: Context) -> None:
        self._app = app
        self._options = options
        self._ctx = ctx
        self._who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
        self._pages_read = ctx.job.partial_count

    async def run(self, document_id: UUID, engine: Engine) -> dict[str, Any]:
        """All of it; who stops it is put down at once, as far as nothing else happens."""
        try:
            return await self._run(document_id, engine)
        except Cancel as why:
            async with self._ctx.session() as conn:
                await store.cancel(conn, self._who.org_id, self._ctx.job.job_id, why.reason, self._pages_read)
            raise

    async def _run(self, document_id: UUID, engine: Engine) -> dict[str, Any]:
        ctx = self._ctx
        document, row = await self._begin(document_id, engine)
        if document.version != row.version:
            raise Cancel("the document has a newer version")
        file_store = FileStore((await self._app.resources()).blobs, ctx.job.org_id)
        try:
            async with _on_disk(file_store, document) as path:
                pages = await self._pages(path, document, row)
        except UnreadableFile as error:
            raise Fail(error.message, code=error.code) from error
        except RemoteUnavailable as error:
            raise Retry(str(error), after=error.retry_after, code="remote.unavailable") from error
        ctx.check_canceled()
        cents = cost(len(pages), self._price(row))
        return await published(self._app, ctx, file_store, document, row, pages, cents=cents)

    async def _begin(self, document_id: UUID, engine: Engine) -> tuple[Document, Extraction]:
        job = self._ctx.job
        values = {"org_id": job.org_id, "document_id": document_id}
        async with self._ctx.session() as conn:
            closed = await read_only_folders(conn, self._who)
            found = await fetch_one(conn, "documents/read", {**values, "hidden_folders": closed})
            if found is None:
                raise Fail("there is no such document that you may change", code="document.unknown")
            document = Document.model_validate(found[0])
            check_subject(job.subject_id, document_subject(document_id))
            row = await store.start(conn, job.org_id, document_id, document.version, job.job_id, engine)
        return document, row

    async def _pages(self, path: Path, document: Document, row: Extraction) -> Sequence[PageElements]:
        ctx, limits = self._ctx, self._options.limits
        if row.engine in REMOTE_ENGINES and row.estimated_pages is None:
            async with open_file(path, document.name, "fast", limits) as counted:
                await self._estimate(row, counted.pages)
        remote = self._allowed(row) if row.engine in REMOTE_ENGINES else None
        async with open_file(path, document.name, row.engine, limits, remote=remote) as reader:
            await self._estimate(row, reader.pages)
            room = _Room(limits.whole_text_max, await ctx.results() if self._pages_read else {})
            missing = [chunk async for chunk in ctx.chunks(range(1, reader.pages + 1))]
            stream = reader.read([chunk.item for chunk in missing])
            for place, chunk in enumerate(missing):
                if place % _EVERY == 0:
                    await self._check_current(document)
                # Outside of the chunk: what stops the reading stops the attempt.
                page = await anext(stream)
                room.take(page)
                async with chunk:
                    chunk.result = page.model_dump(mode="json", exclude_none=True)
                self._pages_read += 1
        kept = await ctx.results()
        return [PageElements.model_validate(kept.pop(key)) for key in sorted(kept, key=int)]

    async def _check_current(self, document: Document) -> None:
        """Stop if nobody wants it any more: what is read elsewhere is paid."""
        self._ctx.check_canceled()
        ids = {"org_id": self._who.org_id, "document_id": document.document_id}
        async with self._ctx.session() as conn:
            found = await fetch_one(conn, "documents/version_of", ids)
        if found is None or found[0] != document.version:
            raise Cancel("the document was deleted, or has a newer version")

    def _allowed(self, row: Extraction) -> Unstructured:
        if row.consent_given_at is None:
            raise Fail(
                f"{row.engine} sends the file elsewhere, and nobody has agreed to that",
                code="extraction.no_consent",
                blocked=True,
            )
        remote = self._options.remote()
        if remote is None:
            raise Fail("no Unstructured service is set up", code="extraction.not_configured", blocked=True)
        return remote

    async def _estimate(self, row: Extraction, pages: int) -> None:
        """Said before the first page is read: before anything leaves the house it is known what it costs."""
        values = {"org_id": self._who.org_id, "extraction_id": row.extraction_id, "pages": pages}
        async with self._ctx.session() as conn:
            await conn.execute(
                statement("extractions/estimate"), {**values, "cents": cost(pages, self._price(row))}
            )

    def _price(self, row: Extraction) -> float:
        return self._options.cents_per_page.get(row.engine, 0.0)


class _Room:
    """How much text may still come, after what an attempt before this one has brought."""

    def __init__(self, most: int, kept: Mapping[str, Any]) -> None:
        self._most = most
        self._left = most
        for page in kept.values():
            self.take(PageElements.model_validate(page))

    def take(self, page: PageElements) -> None:
        """Raise when a page has more than there is room for."""
        self._left -= sum(len(element.text) for element in page.elements)
        if self._left < 0:
            raise UnreadableFile(
                "document.too_large", f"its pages have more than {self._most:,} characters together"
            )


@asynccontextmanager
async def _on_disk(file_store: FileStore, document: Document) -> AsyncIterator[Path]:
    """The file of a document in a folder of its own, under a name of ours."""
    with tempfile.TemporaryDirectory(prefix="duly-document-") as folder:
        path = Path(folder, "file")
        with path.open("wb") as file:  # noqa: ASYNC230 - written in a thread
            async for piece in file_store.read_original(document.sha256):
                await asyncio.to_thread(file.write, piece)
        yield path
