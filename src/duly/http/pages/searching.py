"""The page on which documents are searched: what was found is shown as text, its words marked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.documents.search.search import FARTHEST
from duly.documents.search.shapes import Filters, Found, Hit, Piece
from duly.documents.shapes import Node
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import folder_options, type_options, type_word, wanted_type
from duly.http.pages.render import Pages, fill, language_of
from duly.http.service import Service
from duly.model.access import Scope
from duly.model.errors import ContractError

_AT_A_TIME = 20
_LANGUAGES = ("de", "en")


class _Asked(NamedTuple):
    """What somebody looks for, and where."""

    query: str
    folder: Node | None
    doc_type: str | None
    language: str | None
    offset: int

    @classmethod
    def of(cls, request: Request, folders: Sequence[Node]) -> Self:
        asked = request.query_params.get
        folder = next((one for one in folders if str(one.node_id) == asked("folder")), None)
        language = next((one for one in _LANGUAGES if one == asked("language")), None)
        given = asked("offset") or ""
        offset = int(given) if given.isdecimal() and len(given) < 6 else 0
        return cls(
            (asked("q") or "").strip(),
            folder,
            wanted_type(asked("doc_type")),
            language,
            min(offset, FARTHEST),
        )

    @property
    def node_id(self) -> UUID | None:
        return self.folder.node_id if self.folder else None

    def filters(self) -> Filters:
        """For the search."""
        return Filters(
            nodes=(self.node_id,) if self.node_id else None,
            doc_types=(self.doc_type,) if self.doc_type else None,
            languages=(self.language,) if self.language else None,
        )

    def address(self, offset: int) -> str:
        """The same search, at another place."""
        said = {"q": self.query, "folder": self.node_id or "", "doc_type": self.doc_type or ""}
        return urlencode({**said, "language": self.language or "", "offset": offset})


async def page(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """The form; and what was found, if something was looked for."""
    language = language_of(request)
    folders = await service.documents.folders.list(visitor(who))
    asked = _Asked.of(request, folders)
    marks: dict[str, Any] = {
        f"is_{one}": Markup("selected") if one == asked.language else "" for one in _LANGUAGES
    }
    return pages.page(
        request,
        "search",
        q=asked.query,
        types=type_options(language, asked.doc_type),
        folders=folder_options(language, folders, asked.node_id),
        results=await _results(service, who, asked, language, service.path(request))
        if asked.query
        else Markup(),
        **marks,
    )


async def _results(service: Service, who: Caller, asked: _Asked, language: str, base: str) -> Markup:
    try:
        found = await service.documents.search(
            visitor(who), asked.query, asked.filters(), limit=_AT_A_TIME, offset=asked.offset
        )
    except ContractError as error:
        return fill("search_refused.html", language, detail=error.message)
    return fill(
        "search_results.html",
        language,
        count=_count(language, found),
        corrected=_corrected(language, found),
        export=_export(language, base, asked, found) if who.may(Scope.WRITE) else Markup(),
        hits=Markup().join(_hit(language, base, one) for one in found.hits),
        more=_turn("search_more.html", language, asked, asked.offset + _AT_A_TIME)
        if found.more
        else Markup(),
        back=_turn("search_first.html", language, asked, 0) if asked.offset else Markup(),
    )


def _export(language: str, base: str, asked: _Asked, found: Found) -> Markup:
    if not found.hits:
        return Markup()
    return fill("documents_export.html", language, base=base, query=asked.address(0))


def _turn(template: str, language: str, asked: _Asked, offset: int) -> Markup:
    return fill(template, language, query=asked.address(offset))


def _count(language: str, found: Found) -> Markup:
    if found.total == 0:
        return fill("search_none.html", language)
    if found.exact and found.total == 1:
        return fill("search_one.html", language)
    return fill("search_count.html" if found.exact else "search_least.html", language, n=found.total)


def _corrected(language: str, found: Found) -> Markup:
    said = [
        fill("search_corrected.html", language, word=word, others=", ".join(others))
        for word, others in found.corrected.items()
    ]
    return Markup().join(said)


def _hit(language: str, base: str, hit: Hit) -> Markup:
    shown = hit.fragments or ((Piece(text=hit.text),),)
    return fill(
        "search_hit.html",
        language,
        base=base,
        document_id=hit.document_id,
        name=hit.name,
        place=f"#page-{hit.page}" if hit.page else "",
        page=fill("search_page.html", language, page=hit.page) if hit.page else Markup(),
        type=type_word(language, hit.doc_type),
        fragments=Markup(" … ").join(map(_marked, shown)),
    )


def _marked(pieces: Sequence[Piece]) -> Markup:
    marked = Markup("<mark>{}</mark>")
    return Markup().join(marked.format(piece.text) if piece.hit else piece.text for piece in pieces)
