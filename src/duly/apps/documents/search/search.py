"""Looks for passages in the documents of an org that somebody may see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.schema import Connection, statement
from duly.apps.documents.search import highlight
from duly.apps.documents.search.models import Filters, FragmentPart, Hit, SearchResult
from duly.apps.documents.search.normalize import storable
from duly.apps.documents.search.plan import Plan, plan
from duly.apps.documents.search.query import Query, parse
from duly.apps.documents.search.query_terms import Terms, look_up
from duly.core.errors import ContractError

MAX_HITS = 100
MAX_OFFSET = 1_000
"""Hits that can be turned to: whoever looks farther should say more of what they look for."""
_ALL = Filters()
_REMEMBERED = 50_000
_stems: dict[str, frozenset[str]] = {}
"""Of words that were shown lately: they are the same in every org."""


async def search(
    conn: Connection,
    who: DocumentPrincipal,
    query: str,
    filters: Filters = _ALL,
    *,
    limit: int = 20,
    offset: int = 0,
    group: bool = False,
) -> SearchResult:
    """The best passages for a query, best first; with `group` the best one of each document."""
    _check(limit, offset)
    wanted = _filters(filters)
    parsed = parse(query)
    page = {"filters": wanted, "grouped": group, "limit": limit, "offset": offset}
    terms, rows, how = await _looked(conn, who, parsed, page)
    if not rows and parsed.groups is None and await hidden_folders(conn, who):
        # Words that only closed folders have must look like words that nothing has.
        terms, rows, how = await _looked(conn, who, parsed, page, mistrust=True)
    if how is None:
        return SearchResult()
    if not rows and offset:
        # Past the end: how many there are is still said.
        rows = await _find(conn, who, how, {**page, "offset": 0, "limit": 1})
        return _found([], rows, offset, {})
    hits, corrected = await _shown(conn, rows, parsed, terms)
    return _found(hits, rows, offset, corrected)


async def _looked(
    conn: Connection, who: DocumentPrincipal, parsed: Query, page: dict[str, Any], *, mistrust: bool = False
) -> tuple[Terms, list[tuple[Any, ...]], Plan | None]:
    terms = await look_up(conn, who.org_id, parsed, mistrust=mistrust)
    how = plan(parsed, terms)
    return terms, [] if how is None else await _find(conn, who, how, page), how


async def _find(
    conn: Connection, who: DocumentPrincipal, how: Plan, page: dict[str, Any]
) -> list[tuple[Any, ...]]:
    values = asdict(how) | {"org_id": who.org_id, "principal": who.name}
    return await (await conn.execute(statement("search/find"), {**values, **page})).fetchall()


def _text(row: Sequence[Any]) -> str:
    """Of a passage; a document without any is found by its name."""
    return str(row[1] if row[8] is None else row[8])


def _hit(row: Sequence[Any], fragments: tuple[tuple[FragmentPart, ...], ...]) -> Hit:
    document_id, name, node_id, doc_type, index, page, kind, language, _, score = row[:10]
    return Hit(
        document_id=document_id,
        name=name,
        node_id=node_id,
        doc_type=doc_type,
        chunk_index=index,
        page=page,
        element_type=kind,
        language=language,
        score=round(score or 0.0, 4),
        text=_text(row),
        fragments=fragments,
    )


def _found(
    hits: Sequence[Hit], rows: Sequence[Sequence[Any]], offset: int, corrected: dict[str, Any]
) -> SearchResult:
    total, exact = rows[0][10:12] if rows else (0, True)
    more = bool(hits) and offset + len(hits) < total and offset + len(hits) <= MAX_OFFSET
    return SearchResult(hits=tuple(hits), total=total, exact=exact, more=more, corrected=corrected)


async def _shown(
    conn: Connection, rows: Sequence[Sequence[Any]], query: Query, terms: Terms
) -> tuple[list[Hit], dict[str, tuple[str, ...]]]:
    """Hits with their fragments, and corrections in words that stand there: others are nobody's business."""
    stems = set(terms.found)
    parts = highlight.parts(stems)
    texts = [_text(row) for row in rows]
    marked = [highlight.marks(text, parts) for text in texts]
    unsure = {text[m.start : m.end] for text, ms in zip(texts, marked, strict=True) for m in ms if not m.sure}
    stemmed = await _stemmed(conn, unsure)
    shown = []
    for row, text, places in zip(rows, texts, marked, strict=True):
        shown.append(_hit(row, highlight.fragments(text, highlight.hits(text, places, stems, stemmed))))
    corrected = {
        query.words[place]: tuple(sorted({word for word, has in stemmed.items() if has & instead}))
        for place, instead in sorted(terms.corrected.items())
    }
    return shown, {word: instead for word, instead in corrected.items() if instead}


async def _stemmed(conn: Connection, words: set[str]) -> dict[str, frozenset[str]]:
    unknown = sorted(word for word in words if word not in _stems)
    if len(_stems) > _REMEMBERED:
        _stems.clear()
        unknown = sorted(words)
    if unknown:
        found = await conn.execute(statement("search/stems"), {"words": unknown})
        _stems.update({word: frozenset(stems) for word, stems in await found.fetchall()})
    return {word: _stems[word] for word in words}


def _filters(filters: Filters) -> str:
    said = json.dumps(filters.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
    if "\\u0000" in said or said != storable(said):
        raise ContractError("hold characters that are no text", field="filters", fix="leave them out")
    return said


def _check(limit: int, offset: int) -> None:
    if not 1 <= limit <= MAX_HITS:
        raise ContractError("is out of range", field="limit", fix=f"use 1 to {MAX_HITS}")
    if not 0 <= offset <= MAX_OFFSET:
        raise ContractError(
            "is too far", field="offset", fix=f"use 0 to {MAX_OFFSET}, or say more of what to look for"
        )
