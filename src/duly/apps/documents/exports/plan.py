"""Plan the files of an export: small documents share a file, large ones are split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.exports.models import ExportBatch, ExportFormat, ExportItem
from duly.apps.documents.search.models import Hit

_MAX_FILE_WEIGHT: dict[ExportFormat, int] = {"csv": 2_000, "jsonl": 5_000, "pdf": 100}
"""The documents, passages or pages of one file."""
_MAX_ITEM_PAGES = 50
"""The pages of a document that are rendered in one go."""


class SelectedDocument(NamedTuple):
    """A document to export."""

    document_id: UUID
    pages: int | None
    passages: int | None


def plan_documents(documents: Iterable[SelectedDocument], form: ExportFormat) -> list[ExportBatch]:
    """Return the files of an export of documents."""
    return _batches("documents", form, _weighted_items(documents, form))


def plan_hits(hits: Sequence[Hit], form: ExportFormat) -> list[ExportBatch]:
    """Return the files of an export of a search; a PDF has each page with a hit once."""
    if form == "pdf":
        pages = dict.fromkeys((hit.document_id, hit.page or 1) for hit in hits)
        items = [ExportItem(document_id=document_id, first=page, last=page) for document_id, page in pages]
    else:
        items = [
            ExportItem(document_id=hit.document_id, hit=_row(rank, hit)) for rank, hit in enumerate(hits, 1)
        ]
    return _batches("search", form, ((item, 1) for item in items))


def _weighted_items(
    documents: Iterable[SelectedDocument], form: ExportFormat
) -> Iterator[tuple[ExportItem, int]]:
    for document in documents:
        if form == "pdf":
            pages = document.pages or _MAX_ITEM_PAGES
            for first in range(1, pages + 1, _MAX_ITEM_PAGES):
                last = min(first + _MAX_ITEM_PAGES - 1, pages)
                weight = last - first + 1 if document.pages else 1
                yield ExportItem(document_id=document.document_id, first=first, last=last), weight
        else:
            weight = 1 if form == "csv" else 1 + (document.passages or 0)
            yield ExportItem(document_id=document.document_id), weight


def _batches(stem: str, form: ExportFormat, weighted: Iterable[tuple[ExportItem, int]]) -> list[ExportBatch]:
    files: list[list[ExportItem]] = []
    room = 0
    for item, weight in weighted:
        if weight > room:
            files.append([])
            room = _MAX_FILE_WEIGHT[form]
        files[-1].append(item)
        room -= weight
    if len(files) == 1:
        return [ExportBatch(name=f"{stem}.{form}", items=files[0])]
    return [
        ExportBatch(name=f"{stem}-{number:04}.{form}", items=items) for number, items in enumerate(files, 1)
    ]


def _row(rank: int, hit: Hit) -> dict[str, object]:
    return {"rank": rank, **hit.model_dump(mode="json", exclude={"fragments"})}
