"""Makes documents findable, and takes them out again: in the transaction of whoever changed them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.apps.documents.elements import Passage
from duly.apps.documents.schema import Connection, statement
from duly.apps.documents.search.compounds import parts_of
from duly.apps.documents.search.language import configuration, languages_of
from duly.apps.documents.search.normalize import of_name, readable, storable

_NAME_ONLY = -1
"""The place of a document's name where it has no passages."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """Passages with their languages and the parts of their compounds, as columns."""

    columns: dict[str, Any]
    language: str | None


async def prepare(passages: Sequence[Passage], language: str | None = None) -> Prepared:
    """Look at passages before anything is locked: thousands of them take seconds."""
    return Prepared(await asyncio.to_thread(_columns, passages, language), language)


async def publish(
    conn: Connection,
    org_id: UUID,
    document_id: UUID,
    extraction_id: UUID | None,
    name: str,
    passages: Sequence[Passage] | Prepared,
    *,
    language: str | None = None,
) -> int:
    """Let search find these passages of a document, and no others. Others see all of it at the commit."""
    prepared = passages if isinstance(passages, Prepared) else await prepare(passages, language)
    rows = {**prepared.columns, "name": of_name(storable(name))}
    keys = {"org_id": org_id, "document_id": document_id, "extraction_id": extraction_id}
    tag = await _lock(conn)
    await conn.execute(statement("passages/delete"), keys)
    await conn.execute(statement("passages/insert"), {**keys, **rows})
    how_many = len(rows["indexes"])
    if not how_many:
        only_name = {"indexes": [_NAME_ONLY], "texts": [""], "parts": [""]}
        rows |= {**only_name, "configs": [configuration(prepared.language)]}
    else:
        rows |= {"texts": rows["readable"]}
    await conn.execute(statement("passages/insert_terms"), {**keys, **rows, "tag": tag})
    return how_many


async def unpublish(conn: Connection, org_id: UUID, document_id: UUID) -> None:
    """Let search find nothing of it any more. A document that is deleted needs no such call."""
    await _lock(conn)
    await conn.execute(statement("passages/delete"), {"org_id": org_id, "document_id": document_id})


async def rename(conn: Connection, org_id: UUID, document_id: UUID, name: str) -> None:
    """Let search find a document by its new name, and not by its old one."""
    tag = await _lock(conn)
    keys = {"org_id": org_id, "document_id": document_id, "tag": tag}
    await conn.execute(statement("passages/rename"), {**keys, "name": of_name(storable(name))})


async def _lock(conn: Connection) -> int:
    found = await conn.execute(statement("search/lock"))
    [row] = await found.fetchall()
    return int(row[0])


def _columns(passages: Sequence[Passage], language: str | None) -> dict[str, Any]:
    """Everything that is written, as columns. It takes a while: compounds and languages are looked at."""
    texts = [storable(passage.text) for passage in passages]
    languages = languages_of(texts, language)
    words = [readable(text) for text in texts]
    return {
        "indexes": [passage.index for passage in passages],
        "pages": [passage.page for passage in passages],
        "types": [passage.type for passage in passages],
        "texts": texts,
        "metadata": [_metadata(passage) for passage in passages],
        "languages": languages,
        "readable": words,
        "configs": [configuration(language) for language in languages],
        "parts": [
            parts_of(text) if configuration(language) == "german" else ""
            for text, language in zip(words, languages, strict=True)
        ],
    }


def _metadata(passage: Passage) -> str:
    return json.dumps({"spans": [span.model_dump(mode="json") for span in passage.spans]})
