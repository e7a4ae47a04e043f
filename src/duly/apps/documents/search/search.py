"""Search the passages of documents that a principal may see."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders
from duly.apps.documents.schema import Connection, fetch_all
from duly.apps.documents.search import highlight
from duly.apps.documents.search.models import Filters, FragmentPart, Hit, SearchResult
from duly.apps.documents.search.normalize import storable
from duly.apps.documents.search.query import Query, parse_query
from duly.apps.documents.search.query_terms import QueryTerms, look_up_terms
from duly.apps.documents.search.ranking import SearchPlan, plan_search
from duly.core.errors import ContractError

MAX_HITS = 100
MAX_OFFSET = 1_000
_NO_FILTERS = Filters()
_MAX_CACHED_STEMS = 50_000
_stem_cache: dict[str, frozenset[str]] = {}
"""Stems of recently highlighted words; they are the same in every org."""


async def search(
    conn: Connection,
    principal: DocumentPrincipal,
    query: str,
    filters: Filters = _NO_FILTERS,
    *,
    limit: int = 20,
    offset: int = 0,
    group: bool = False,
) -> SearchResult:
    """Return the best passages for a query, best first; with `group` the best one of each document."""
    _check_page(limit, offset)
    page = {"filters": _encode_filters(filters), "grouped": group, "limit": limit, "offset": offset}
    parsed = parse_query(query)
    terms = await look_up_terms(conn, principal.org_id, parsed)
    plan = plan_search(parsed, terms)
    rows = await _find_passages(conn, principal, plan, page)
    if not rows and parsed.groups is None and await hidden_folders(conn, principal):
        # Words of hidden folders only must behave like words that no passage contains.
        terms = await look_up_terms(conn, principal.org_id, parsed, treat_as_unknown=True)
        plan = plan_search(parsed, terms)
        rows = await _find_passages(conn, principal, plan, page)
    if not rows and offset:
        # Past the last page: report the total.
        rows = await _find_passages(conn, principal, plan, {**page, "offset": 0, "limit": 1})
        return _result([], rows, offset, {})
    hits, corrected = await _highlight_hits(conn, rows, parsed, terms)
    return _result(hits, rows, offset, corrected)


async def _find_passages(
    conn: Connection, principal: DocumentPrincipal, plan: SearchPlan | None, page: dict[str, Any]
) -> list[tuple[Any, ...]]:
    if plan is None:
        return []
    values = {**asdict(plan), **page, "org_id": principal.org_id, "principal": principal.name}
    return await fetch_all(conn, "search/find_passages", values)


def _text(row: Sequence[Any]) -> str:
    """Return the text of a passage; of a document without passages its name."""
    return str(row[1] if row[8] is None else row[8])


def _hit(row: Sequence[Any], fragments: tuple[tuple[FragmentPart, ...], ...]) -> Hit:
    document_id, name, node_id, doc_type, index, page, element_type, language, _, score = row[:10]
    return Hit(
        document_id=document_id,
        name=name,
        node_id=node_id,
        doc_type=doc_type,
        chunk_index=index,
        page=page,
        element_type=element_type,
        language=language,
        score=round(score or 0.0, 4),
        text=_text(row),
        fragments=fragments,
    )


def _result(
    hits: Sequence[Hit], rows: Sequence[Sequence[Any]], offset: int, corrected: dict[str, Any]
) -> SearchResult:
    total, exact = rows[0][10:12] if rows else (0, True)
    end = offset + len(hits)
    more = bool(hits) and end < total and end <= MAX_OFFSET
    return SearchResult(hits=tuple(hits), total=total, exact=exact, more=more, corrected=corrected)


async def _highlight_hits(
    conn: Connection, rows: Sequence[Sequence[Any]], query: Query, terms: QueryTerms
) -> tuple[list[Hit], dict[str, tuple[str, ...]]]:
    """Return hits with fragments, and corrections in words of these hits: others could be hidden."""
    stems = set(terms.by_lexeme)
    parts = highlight.search_parts(stems)
    texts = [_text(row) for row in rows]
    candidates = [highlight.find_candidates(text, parts) for text in texts]
    stems_of = await _stem_words(
        conn,
        {
            text[word.start : word.end]
            for text, words in zip(texts, candidates, strict=True)
            for word in words
            if not word.is_compound
        },
    )
    hits = []
    for row, text, words in zip(rows, texts, candidates, strict=True):
        matches = highlight.filter_matches(text, words, stems, stems_of)
        hits.append(_hit(row, highlight.select_fragments(text, matches)))
    corrected = {
        query.words[position]: tuple(sorted(word for word, has in stems_of.items() if has & replacements))
        for position, replacements in sorted(terms.corrections.items())
    }
    return hits, {word: replacements for word, replacements in corrected.items() if replacements}


async def _stem_words(conn: Connection, words: set[str]) -> dict[str, frozenset[str]]:
    if len(_stem_cache) > _MAX_CACHED_STEMS:
        _stem_cache.clear()
    unknown = sorted(words - _stem_cache.keys())
    if unknown:
        rows = await fetch_all(conn, "search/stem_words", {"words": unknown})
        _stem_cache.update({word: frozenset(stems) for word, stems in rows})
    return {word: _stem_cache[word] for word in words}


def _encode_filters(filters: Filters) -> str:
    encoded = json.dumps(filters.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
    if "\\u0000" in encoded or encoded != storable(encoded):
        raise ContractError("contain NUL or lone surrogates", field="filters", fix="remove them")
    return encoded


def _check_page(limit: int, offset: int) -> None:
    if not 1 <= limit <= MAX_HITS:
        raise ContractError(
            f"must be between 1 and {MAX_HITS}, got {limit}", field="limit", fix=f"use 1 to {MAX_HITS}"
        )
    if not 0 <= offset <= MAX_OFFSET:
        raise ContractError(
            f"must be between 0 and {MAX_OFFSET}, got {offset}",
            field="offset",
            fix="use a smaller offset, or a more specific query",
        )
