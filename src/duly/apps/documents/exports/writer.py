"""One file of an export: what its items are now, for whoever asks."""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

from duly.apps.documents.exports.models import Batch, Format, Item
from duly.apps.documents.exports.page_images import drawn, kind_of
from duly.apps.documents.exports.pdf import Paper
from duly.apps.documents.exports.tables import as_csv, as_lines
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.library.file_store import FileStore
from duly.apps.documents.models import Document
from duly.apps.documents.schema import Connection, fetch_all
from duly.blobs import BlobCorrupted, BlobNotFound
from duly.worker.context.context import Context

_OF_DOCUMENTS = (
    "document_id", "name", "folder", "doc_type", "doc_type_confidence", "doc_type_confirmed", "status",
    "language", "page_count", "chunk_count", "media_type", "size", "sha256", "version", "metadata",
    "created_by", "created_at", "updated_at",
)  # fmt: skip
_OF_HITS = (
    "rank", "score", "document_id", "name", "doc_type", "page", "chunk_index", "element_type", "language",
    "text",
)  # fmt: skip


class Made(NamedTuple):
    """A file, and what went into it."""

    data: bytes
    documents: Sequence[UUID]
    rows: int
    left_out: int
    warnings: Mapping[str, int]


class Maker:
    """Makes the files of one export. What is closed to its visitor by now is left out."""

    def __init__(self, ctx: Context, who: DocumentPrincipal, form: Format, *, bom: bool = False) -> None:
        self._ctx = ctx
        self._who = who
        self._form = form
        self._bom = bom
        self._file_store = FileStore(ctx.services.blobs, who.org_id)

    async def make(self, batch: Batch) -> Made:
        """One of them."""
        async with self._ctx.session() as conn:
            documents = await self._open(conn, batch)
            folders = await self._folders(conn)
        items = [item for item in batch.items if item.document_id in documents]
        left_out = len(batch.items) - len(items)
        seen = list(dict.fromkeys(item.document_id for item in items))
        if self._form == "pdf":
            paper, warnings = await self._paper(items, documents)
            return Made(await asyncio.to_thread(paper.data), seen, paper.pages, left_out, warnings)
        lines = [await self._line(item, documents[item.document_id], folders) for item in items]
        columns = _OF_HITS if any(item.hit is not None for item in items) else _OF_DOCUMENTS
        data = await asyncio.to_thread(self._written, columns, lines)
        return Made(data, seen, len(lines), left_out, {})

    def _written(self, columns: Sequence[str], lines: Sequence[Mapping[str, Any]]) -> bytes:
        return as_csv(columns, lines, bom=self._bom) if self._form == "csv" else as_lines(lines)

    async def _open(self, conn: Connection, batch: Batch) -> dict[UUID, Document]:
        ids = list({item.document_id for item in batch.items})
        values = {
            "org_id": self._who.org_id,
            "document_ids": ids,
            "hidden_folders": await hidden_folders(conn, self._who),
        }
        found = [
            Document.model_validate(row[0]) for row in await fetch_all(conn, "exports/documents", values)
        ]
        return {document.document_id: document for document in found}

    async def _folders(self, conn: Connection) -> dict[UUID | None, str]:
        values = {
            "org_id": self._who.org_id,
            "node_id": None,
            "hidden_folders": await hidden_folders(conn, self._who),
        }
        return {
            UUID(row[0]["node_id"]): row[0]["path"] for row in await fetch_all(conn, "nodes/list", values)
        }

    async def _line(
        self, item: Item, document: Document, folders: Mapping[UUID | None, str]
    ) -> dict[str, Any]:
        if item.hit is not None:
            return item.hit
        line = document.model_dump(mode="json") | {"folder": folders.get(document.node_id, "")}
        if self._form == "jsonl":
            names = ("index", "page", "type", "text")
            line["chunks"] = [dict(zip(names, chunk, strict=True)) for chunk in await self._chunks(item)]
        return line

    async def _chunks(self, item: Item) -> Sequence[Sequence[Any]]:
        values = {"org_id": self._who.org_id, "document_id": item.document_id}
        async with self._ctx.session() as conn:
            return await fetch_all(conn, "exports/chunks", {**values, "first": item.first, "last": item.last})

    async def _paper(
        self, items: Sequence[Item], documents: Mapping[UUID, Document]
    ) -> tuple[Paper, Counter[str]]:
        paper, warnings = await asyncio.to_thread(Paper), Counter[str]()
        for item in items:
            self._ctx.check_canceled()
            document = documents[item.document_id]
            texts = await self._texts(item)
            async with self._pictures(item, document, warnings) as pictures:
                await asyncio.to_thread(_lay_out, paper, document, item, texts, pictures)
        if paper.lost:
            warnings["export.missing_letters"] = paper.lost
        return paper, warnings

    async def _texts(self, item: Item) -> dict[int, str]:
        texts = defaultdict[int, list[str]](list)
        for _, page, _, text in await self._chunks(item):
            texts[page or 1].append(text)
        return {page: "\n\n".join(passages) for page, passages in texts.items()}

    @asynccontextmanager
    async def _pictures(
        self, item: Item, document: Document, warnings: Counter[str]
    ) -> AsyncIterator[dict[int, Path]]:
        kind = kind_of(document.media_type)
        with tempfile.TemporaryDirectory(prefix="duly-export-") as name:
            pictures: dict[int, Path] = {}
            if kind is not None and await self._on_disk(document, Path(name, "file")):
                pictures = await drawn(Path(name, "file"), kind, item.first or 1, item.last or 1, Path(name))
                known = min(item.last or 1, document.page_count or 1) - (item.first or 1) + 1
                warnings["export.pages_not_drawn"] += max(known - len(pictures), 0)
            elif kind is not None:
                warnings["export.file_missing"] += 1
            yield pictures
        for code in [code for code, count in warnings.items() if not count]:
            del warnings[code]

    async def _on_disk(self, document: Document, path: Path) -> bool:
        """Whether its file is there, and what its hash says."""
        try:
            with path.open("wb") as file:
                async for piece in self._file_store.read_original(document.sha256):
                    await asyncio.to_thread(file.write, piece)
        except (BlobNotFound, BlobCorrupted):
            return False
        return True


def _lay_out(
    paper: Paper, document: Document, item: Item, texts: Mapping[int, str], pictures: Mapping[int, Path]
) -> None:
    """Page by page: its picture, then its text. What has neither is named."""
    pages = sorted({*texts, *pictures} | ({item.first or 1} if not texts and not pictures else set()))
    total = document.page_count or len(pages)
    for page in pages:
        title = f"{document.name}, {page}/{total}"
        if page in pictures:
            paper.picture(title, pictures[page])
        if page in texts or page not in pictures:
            paper.text(title, texts.get(page, ""))
