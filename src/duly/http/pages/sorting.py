"""The pages on which people say what documents are, and where each kind belongs."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import Request
from markupsafe import Markup
from starlette.responses import Response

from duly.documents.classes.shapes import Unsure
from duly.http.caller import Caller
from duly.http.document_shapes import visitor
from duly.http.pages.choices import folder_options, type_options, type_word
from duly.http.pages.render import Pages, fill, language_of
from duly.http.service import Service
from duly.model.access import Scope

_AT_A_TIME = 20
_SHOWN = 3


async def review(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """What nobody is sure of, the newest first."""
    language, base = language_of(request), service.path(request)
    after = request.query_params.get("after") or None
    found = await service.documents.classes.review(visitor(who), after=after, limit=_AT_A_TIME)
    may_write = who.may(Scope.WRITE)
    items = Markup().join(_item(language, base, one, may_write=may_write) for one in found.unsure)
    more = fill("review_more.html", language, query=urlencode({"after": found.after or ""}))
    return pages.page(
        request,
        "review",
        about=fill("review_about.html", language) if items else Markup(),
        items=items or fill("review_none.html", language),
        more=more if found.after else Markup(),
    )


def _item(language: str, base: str, one: Unsure, *, may_write: bool) -> Markup:
    document_id, types = one.document.document_id, type_options(language, also=one.guess)
    told = [
        fill("review_evidence.html", language, term=said.term.replace("*", "…"), text=said.text)
        for said in one.classification.evidence[:_SHOWN]
    ]
    form = fill("review_form.html", language, document_id=document_id, types=types)
    return fill(
        "review_item.html",
        language,
        base=base,
        document_id=document_id,
        name=one.document.name,
        guess=_guess(language, one),
        evidence=Markup().join(told),
        form=form if may_write else Markup(),
    )


def _guess(language: str, one: Unsure) -> Markup:
    if one.guess is None:
        return fill("review_nothing.html", language)
    share = f"{one.classification.confidence:.0%}".replace("%", " %")
    return fill("review_guess.html", language, type=type_word(language, one.guess), share=share)


async def filing(pages: Pages, request: Request, service: Service, who: Caller) -> Response:
    """Which folder documents of each type are suggested for."""
    language, base, asker = language_of(request), service.path(request), visitor(who)
    folders = await service.documents.folders.list(asker)
    paths = {one.node_id: one.path for one in folders}
    may_write = who.may(Scope.WRITE)
    rows = []
    for rule in await service.documents.classes.filing(asker):
        word = type_word(language, rule.doc_type)
        remove = fill("filing_remove.html", language, doc_type=rule.doc_type, type=word)
        place = {"node_id": rule.node_id, "path": paths.get(rule.node_id, "")}
        shown = remove if may_write else Markup()
        rows.append(fill("filing_rule.html", language, base=base, type=word, remove=shown, **place))
    table = fill("filing_rules.html", language, rows=Markup().join(rows))
    form = fill(
        "filing_form.html",
        language,
        types=type_options(language),
        folders=folder_options(language, folders, None),
    )
    return pages.page(
        request,
        "filing",
        rules=table if rows else fill("filing_none.html", language),
        form=form if may_write else Markup(),
    )
