"""What goes into which file: small ones together, large ones in pieces, so that each is made in bounds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from uuid import UUID

from duly.apps.documents.exports.models import Batch, Format, Item
from duly.apps.documents.search.models import Hit

_MOST: dict[Format, int] = {"csv": 2_000, "jsonl": 5_000, "pdf": 100}
"""Documents, passages or pages of one file."""
_PIECE = 50
"""Pages of a document that are drawn at once."""


class Chosen(NamedTuple):
    """A document that is exported."""

    document_id: UUID
    pages: int | None
    chunks: int | None


def of_documents(chosen: Iterable[Chosen], form: Format) -> list[Batch]:
    """The files of an export of documents."""
    return _batches("documents", form, _weighed(chosen, form))


def of_hits(hits: Sequence[Hit], form: Format) -> list[Batch]:
    """The files of an export of a search; on paper the pages on which something was found, each once."""
    if form == "pdf":
        found = dict.fromkeys((hit.document_id, hit.page or 1) for hit in hits)
        pages = (Item(document_id=document_id, first=page, last=page) for document_id, page in found)
        return _batches("search", form, ((item, 1) for item in pages))
    rows = (Item(document_id=hit.document_id, hit=_row(rank, hit)) for rank, hit in enumerate(hits, 1))
    return _batches("search", form, ((item, 1) for item in rows))


def _weighed(chosen: Iterable[Chosen], form: Format) -> Iterator[tuple[Item, int]]:
    for one in chosen:
        if form == "pdf":
            pages = one.pages or _PIECE
            for first in range(1, pages + 1, _PIECE):
                last = min(first + _PIECE - 1, pages)
                weight = last - first + 1 if one.pages else 1
                yield Item(document_id=one.document_id, first=first, last=last), weight
        else:
            yield Item(document_id=one.document_id), 1 if form == "csv" else 1 + (one.chunks or 0)


def _batches(stem: str, form: Format, weighed: Iterable[tuple[Item, int]]) -> list[Batch]:
    parts: list[list[Item]] = []
    room = 0
    for item, weight in weighed:
        if weight > room:
            parts.append([])
            room = _MOST[form]
        parts[-1].append(item)
        room -= weight
    if len(parts) == 1:
        return [Batch(name=f"{stem}.{form}", items=parts[0])]
    return [Batch(name=f"{stem}-{place:04}.{form}", items=items) for place, items in enumerate(parts, 1)]


def _row(rank: int, hit: Hit) -> dict[str, object]:
    return {"rank": rank, **hit.model_dump(mode="json", exclude={"fragments"})}
