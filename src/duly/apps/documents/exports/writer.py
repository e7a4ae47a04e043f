"""Write one file of an export, with what its requester may see now."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from duly.apps.documents.exports.models import ExportBatch, ExportFormat, ExportItem
from duly.apps.documents.exports.page_images import render_pages, renderer_for
from duly.apps.documents.exports.pdf import PdfWriter
from duly.apps.documents.exports.tables import to_csv, to_jsonl
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.models import Document
from duly.apps.documents.schema import Connection, fetch_all
from duly.blobs import BlobCorrupted, BlobNotFound
from duly.worker.context.context import Context

_DOCUMENT_COLUMNS = (
    "document_id", "name", "folder", "doc_type", "doc_type_confidence", "doc_type_confirmed", "status",
    "language", "page_count", "chunk_count", "media_type", "size", "sha256", "version", "metadata",
    "created_by", "created_at", "updated_at",
)  # fmt: skip
_HIT_COLUMNS = (
    "rank", "score", "document_id", "name", "doc_type", "page", "chunk_index", "element_type", "language",
    "text",
)  # fmt: skip


class WrittenFile(NamedTuple):
    """A file, and the counts of its content."""

    data: bytes
    documents: Sequence[UUID]
    rows: int
    left_out: int
    warnings: Mapping[str, int]


class ExportWriter:
    """Writes the files of one export. Documents that are hidden by now are left out."""

    def __init__(
        self, ctx: Context, principal: DocumentPrincipal, form: ExportFormat, *, bom: bool = False
    ) -> None:
        self._ctx = ctx
        self._principal = principal
        self._form = form
        self._bom = bom
        self._file_store = FileStore(ctx.services.blobs, principal.org_id)

    async def write(self, batch: ExportBatch) -> WrittenFile:
        """Write the file of a batch."""
        async with self._ctx.session() as conn:
            hidden = await hidden_folders(conn, self._principal)
            documents = await self._documents(conn, batch, hidden)
            folder_paths = await self._folder_paths(conn, hidden)
        items = [item for item in batch.items if item.document_id in documents]
        left_out = len(batch.items) - len(items)
        document_ids = list(dict.fromkeys(item.document_id for item in items))
        if self._form == "pdf":
            pdf, warnings = await self._write_pdf(items, documents)
            data = await asyncio.to_thread(pdf.data)
            return WrittenFile(data, document_ids, pdf.pages, left_out, warnings)
        rows = [await self._row(item, documents[item.document_id], folder_paths) for item in items]
        columns = _HIT_COLUMNS if any(item.hit is not None for item in items) else _DOCUMENT_COLUMNS
        data = await asyncio.to_thread(self._format_rows, columns, rows)
        return WrittenFile(data, document_ids, len(rows), left_out, {})

    def _format_rows(self, columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> bytes:
        return to_csv(columns, rows, bom=self._bom) if self._form == "csv" else to_jsonl(rows)

    async def _documents(
        self, conn: Connection, batch: ExportBatch, hidden: Sequence[UUID]
    ) -> dict[UUID, Document]:
        ids = list({item.document_id for item in batch.items})
        values = {"org_id": self._principal.org_id, "document_ids": ids, "hidden_folders": hidden}
        rows = await fetch_all(conn, "exports/read_documents", values)
        documents = [Document.model_validate(row[0]) for row in rows]
        return {document.document_id: document for document in documents}

    async def _folder_paths(self, conn: Connection, hidden: Sequence[UUID]) -> dict[UUID | None, str]:
        values = {"org_id": self._principal.org_id, "node_id": None, "hidden_folders": hidden}
        rows = await fetch_all(conn, "nodes/list", values)
        return {UUID(row[0]["node_id"]): row[0]["path"] for row in rows}

    async def _row(
        self, item: ExportItem, document: Document, folder_paths: Mapping[UUID | None, str]
    ) -> dict[str, Any]:
        if item.hit is not None:
            return item.hit
        row = document.model_dump(mode="json") | {"folder": folder_paths.get(document.node_id, "")}
        if self._form == "jsonl":
            names = ("index", "page", "type", "text")
            row["chunks"] = [dict(zip(names, passage, strict=True)) for passage in await self._passages(item)]
        return row

    async def _passages(self, item: ExportItem) -> Sequence[Sequence[Any]]:
        values = {"org_id": self._principal.org_id, "document_id": item.document_id}
        async with self._ctx.session() as conn:
            return await fetch_all(
                conn, "exports/list_passages", {**values, "first": item.first, "last": item.last}
            )

    async def _write_pdf(
        self, items: Sequence[ExportItem], documents: Mapping[UUID, Document]
    ) -> tuple[PdfWriter, Counter[str]]:
        pdf, warnings = await asyncio.to_thread(PdfWriter), Counter[str]()
        for item in items:
            self._ctx.check_canceled()
            document = documents[item.document_id]
            texts = await self._page_texts(item)
            async with self._page_images(item, document, warnings) as images:
                await asyncio.to_thread(_add_pages, pdf, document, item, texts, images)
        if pdf.missing_letters:
            warnings["export.missing_letters"] = pdf.missing_letters
        return pdf, warnings

    async def _page_texts(self, item: ExportItem) -> dict[int, str]:
        texts = defaultdict[int, list[str]](list)
        for _, page, _, text in await self._passages(item):
            texts[page or 1].append(text)
        return {page: "\n\n".join(passages) for page, passages in texts.items()}

    @asynccontextmanager
    async def _page_images(
        self, item: ExportItem, document: Document, warnings: Counter[str]
    ) -> AsyncIterator[dict[int, Path]]:
        renderer, first, last = renderer_for(document.media_type), item.first or 1, item.last or 1
        with tempfile.TemporaryDirectory(prefix="duly-export-") as folder:
            images: dict[int, Path] = {}
            file = Path(folder, "file")
            if renderer is not None and await self._save_to(document, file):
                images = await render_pages(file, renderer, first, last, Path(folder))
                expected = min(last, document.page_count or 1) - first + 1
                warnings["export.pages_not_drawn"] += max(expected - len(images), 0)
            elif renderer is not None:
                warnings["export.file_missing"] += 1
            yield images
        for code in [code for code, count in warnings.items() if not count]:
            del warnings[code]

    async def _save_to(self, document: Document, path: Path) -> bool:
        """Save the document's file; return whether it exists and matches its hash."""
        try:
            with path.open("wb") as file:
                async for chunk in self._file_store.read_original(document.sha256):
                    await asyncio.to_thread(file.write, chunk)
        except (BlobNotFound, BlobCorrupted):
            return False
        return True


def _add_pages(
    pdf: PdfWriter,
    document: Document,
    item: ExportItem,
    texts: Mapping[int, str],
    images: Mapping[int, Path],
) -> None:
    """Add each page as its image, then its text; a document with neither gets a page with its name."""
    pages = sorted({*texts, *images}) or [item.first or 1]
    total = document.page_count or len(pages)
    for page in pages:
        title = f"{document.name}, {page}/{total}"
        if page in images:
            pdf.add_image(title, images[page])
        if page in texts or page not in images:
            pdf.add_text(title, texts.get(page, ""))
