"""`duly docs`: extract documents, and print their text and passages."""

from __future__ import annotations

from typing import Annotated

import typer
from pydantic import TypeAdapter

from duly.app import Duly
from duly.apps.documents.command_group import DocumentId, JobFollower, Principal, docs
from duly.apps.documents.elements import Engine, PageElements
from duly.apps.documents.errors import UnknownFile
from duly.cli.options import Size
from duly.cli.output import Output, print_lines


@docs.command()
async def extract(
    duly: Duly,
    document: DocumentId,
    principal: Principal,
    follower: JobFollower,
    engine: Annotated[Engine, typer.Option(help="Choose the extraction engine.")] = "fast",
    consent: Annotated[
        bool, typer.Option("--consent", help="Allow a remote engine to send the file to its service.")
    ] = False,
) -> Output | None:
    """Read the text of a document again, or with another engine."""
    started = await duly.documents.extract(principal, document, engine, consent=consent)
    return await follower.follow(duly, principal, started.job_id)


@docs.command()
async def text(
    duly: Duly,
    document: DocumentId,
    principal: Principal,
    page: Annotated[int | None, typer.Option(min=1, help="Select one page.")] = None,
) -> Output:
    """Print the extracted text of a document, page by page."""
    _, elements = await duly.documents.elements(principal, document)
    pages = TypeAdapter(list[PageElements]).validate_json(elements)
    if page is not None and page > len(pages):
        raise UnknownFile("no such page", field="page", fix=f"the document has {len(pages)}")
    selected = [one for one in pages if page in (None, one.number)]

    def print_pages() -> None:
        for one in selected:
            state = "" if one.state == "text" else f" ({one.state})"
            print_lines([f"-- page {one.number}{state}", one.text])

    return Output({"document_id": document, "pages": selected}, print_pages)


@docs.command()
async def passages(
    duly: Duly,
    document: DocumentId,
    principal: Principal,
    start: Annotated[int, typer.Option(min=0, help="Start at this passage, from 0.")] = 0,
    limit: Size = 50,
) -> Output:
    """Print the indexed passages of a document in order."""
    found = await duly.documents.passages(principal, document, start=start, limit=limit)

    def print_passages() -> None:
        for passage in found:
            print_lines([f"-- {passage.index}, page {passage.page}, {passage.type}", passage.text])
        if len(found) == limit:
            print(f"next page: --start {found[-1].index + 1}")

    return Output({"document_id": document, "passages": found}, print_passages)
