"""`duly docs search`."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from duly.cli.docs_application import folder_id, run, visitor
from duly.cli.docs_files import facts
from duly.cli.options import ActorName, AppName, AsJson, Org, moment
from duly.cli.show import console, print_json
from duly.documents.search.shapes import Filters, Found, Hit
from duly.wiring import Duly


def search(
    query: Annotated[str, typer.Argument(help='Words; or with "a phrase", -not, OR.', show_default=False)],
    org: Org,
    folder: Annotated[
        list[str] | None, typer.Option("--folder", help="Only in this one and below; may be given again.")
    ] = None,
    doc_type: Annotated[
        list[str] | None, typer.Option("--type", help="Only of this type, as invoice.")
    ] = None,
    language: Annotated[list[str] | None, typer.Option(help="Only in this language, as de.")] = None,
    page_from: Annotated[int | None, typer.Option(min=1, help="Only from this page on.")] = None,
    page_to: Annotated[int | None, typer.Option(min=1, help="Only up to this page.")] = None,
    created_from: Annotated[str | None, typer.Option(help="Not older, as in 2026-11-15T12:00:00Z.")] = None,
    created_to: Annotated[str | None, typer.Option(help="Only older ones.")] = None,
    metadata: Annotated[list[str] | None, typer.Option(help="Only with this, as NAME=VALUE; repeat.")] = None,
    group: Annotated[bool, typer.Option("--group", help="The best passage of each document.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many at most.")] = 10,
    offset: Annotated[int, typer.Option(min=0, help="After so many.")] = 0,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The passages of documents that fit a query, the best first."""
    who = visitor(org, actor)
    filters = Filters(
        doc_types=tuple(doc_type or ()) or None,
        languages=tuple(language or ()) or None,
        page_from=page_from,
        page_to=page_to,
        created_from=moment(created_from, "--created-from"),
        created_to=moment(created_to, "--created-to"),
        metadata=facts(metadata) or None,
    )

    async def find(duly: Duly) -> Found:
        ids = [await folder_id(duly.documents, who, one) for one in folder or ()]
        within = filters.model_copy(update={"nodes": tuple(one for one in ids if one) or None})
        return await duly.documents.search(who, query, within, limit=limit, offset=offset, group=group)

    found = run(app, find)
    print_json(found) if as_json else _show(found, offset)


def _show(found: Found, offset: int) -> None:
    screen = console()
    for word, instead in found.corrected.items():
        screen.print(_safe(f"{word}: nothing has it; looked for {', '.join(instead)}"))
    for number, hit in enumerate(found.hits, offset + 1):
        screen.print(_title(number, hit))
        for fragment in hit.fragments:
            parts = [_safe(piece.text, "bold" if piece.hit else "") for piece in fragment]
            screen.print(Text("   ").append_text(Text().join(parts)))
    screen.print(_safe(f"{found.total}{'' if found.exact else ' or more'} found"))
    if found.more:
        screen.print(_safe(f"there is more: --offset {offset + len(found.hits)}"))


def _title(number: int, hit: Hit) -> Text:
    page = f", page {hit.page}" if hit.page else ""
    return _safe(f"{number}. {hit.name}{page}  {hit.document_id}")


def _safe(said: str, style: str = "") -> Text:
    """Words of documents: neither markup nor anything that a terminal would obey; a line is a line."""
    plain = " ".join(said.split("\n"))
    return Text("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in plain), style)
