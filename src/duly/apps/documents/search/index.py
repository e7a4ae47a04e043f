"""The search index: publish, rename and remove documents in the transaction that changes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from duly.apps.documents.elements import Passage
from duly.apps.documents.schema import Connection, fetch_all, statement
from duly.apps.documents.search.compounds import compound_parts
from duly.apps.documents.search.language import detect_languages, text_search_configuration
from duly.apps.documents.search.normalize import normalize, normalize_name, storable

_NAME_ONLY = -1
"""The index of the entry for the name of a document without passages."""


@dataclass(frozen=True, slots=True)
class PreparedPassages:
    """Passages with their languages and compound parts, as columns."""

    columns: dict[str, Any]
    language: str | None


async def prepare(passages: Sequence[Passage], language: str | None = None) -> PreparedPassages:
    """Analyze passages before anything is locked: thousands of them take seconds."""
    return PreparedPassages(await asyncio.to_thread(_columns, passages, language), language)


async def publish(
    conn: Connection,
    org_id: UUID,
    document_id: UUID,
    extraction_id: UUID | None,
    name: str,
    passages: Sequence[Passage] | PreparedPassages,
    *,
    language: str | None = None,
) -> int:
    """Replace the passages of a document in the index; return their number."""
    prepared = passages if isinstance(passages, PreparedPassages) else await prepare(passages, language)
    columns = {**prepared.columns, "name": normalize_name(storable(name))}
    ids = {"org_id": org_id, "document_id": document_id, "extraction_id": extraction_id}
    tag = await _lock(conn)
    await conn.execute(statement("passages/delete"), ids)
    await conn.execute(statement("passages/insert"), {**ids, **columns})
    count = len(columns["indexes"])
    if count:
        columns["texts"] = columns["normalized"]
    else:
        columns |= {"indexes": [_NAME_ONLY], "texts": [""], "parts": [""]}
        columns["configs"] = [text_search_configuration(prepared.language)]
    await conn.execute(statement("passages/insert_terms"), {**ids, **columns, "tag": tag})
    return count


async def unpublish(conn: Connection, org_id: UUID, document_id: UUID) -> None:
    """Remove a document from the index. Deleting a document removes it without this call."""
    await _lock(conn)
    await conn.execute(statement("passages/delete"), {"org_id": org_id, "document_id": document_id})


async def rename(conn: Connection, org_id: UUID, document_id: UUID, name: str) -> None:
    """Replace the name of a document in the index."""
    tag = await _lock(conn)
    values = {"org_id": org_id, "document_id": document_id, "tag": tag}
    await conn.execute(statement("passages/rename"), {**values, "name": normalize_name(storable(name))})


async def _lock(conn: Connection) -> int:
    """Lock the index of the org, and return the number of the org in it."""
    [[tag]] = await fetch_all(conn, "search/lock", {})
    return int(tag)


def _columns(passages: Sequence[Passage], language: str | None) -> dict[str, Any]:
    texts = [storable(passage.text) for passage in passages]
    languages = detect_languages(texts, language)
    configs = [text_search_configuration(language) for language in languages]
    normalized = [normalize(text) for text in texts]
    return {
        "indexes": [passage.index for passage in passages],
        "pages": [passage.page for passage in passages],
        "types": [passage.type for passage in passages],
        "texts": texts,
        "metadata": [_metadata(passage) for passage in passages],
        "languages": languages,
        "normalized": normalized,
        "configs": configs,
        "parts": [
            compound_parts(text) if config == "german" else ""
            for text, config in zip(normalized, configs, strict=True)
        ],
    }


def _metadata(passage: Passage) -> str:
    return json.dumps({"spans": [span.model_dump(mode="json") for span in passage.spans]})
