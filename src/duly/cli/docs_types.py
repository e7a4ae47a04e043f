"""`duly docs`: what documents are, and where each kind belongs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.cli.docs_application import DocumentId, Folder, folder_id, run, visitor
from duly.cli.docs_reading import Wait, follow
from duly.cli.options import ActorName, AppName, AsJson, Org
from duly.cli.show import Columns, print_facts, print_json, print_table
from duly.documents.classes.shapes import FilingRule
from duly.documents.shapes import Document
from duly.wiring import Duly

_RULES: Columns = {"type": "doc_type", "folder": "node_id"}
_FACTS = ("document_id", "name", "doc_type", "doc_type_confidence", "doc_type_confirmed")
DocType = Annotated[str, typer.Argument(metavar="TYPE", help="As invoice.", show_default=False)]


def classify(
    document: DocumentId,
    org: Org,
    wait: Wait = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have it said anew what a document is."""
    who = visitor(org, actor)

    async def begin(duly: Duly) -> UUID:
        return (await duly.documents.classes.classify(who, document)).job_id

    follow(app, org, begin, wait=wait, as_json=as_json)


def train(
    org: Org, wait: Wait = False, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Have the org's own model made anew of what was confirmed."""
    who = visitor(org, actor)

    async def begin(duly: Duly) -> UUID:
        return (await duly.documents.classes.train(who)).job_id

    follow(app, org, begin, wait=wait, as_json=as_json)


def evaluate(
    org: Org, wait: Wait = False, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """Have it measured how well types are told apart."""
    who = visitor(org, actor)

    async def begin(duly: Duly) -> UUID:
        return (await duly.documents.classes.evaluate(who)).job_id

    follow(app, org, begin, wait=wait, as_json=as_json)


def confirm(
    document: DocumentId,
    doc_type: DocType,
    org: Org,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Say what a document is; that counts, whatever is found out later."""
    who = visitor(org, actor)

    async def say(duly: Duly) -> Document:
        await duly.documents.classes.confirm(who, document, doc_type)
        return await duly.documents.get(who, document)

    said = run(app, say)
    print_json(said) if as_json else print_facts(said, _FACTS)


def filing(org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False) -> None:
    """Where documents of each type belong."""
    rules = run(app, lambda duly: duly.documents.classes.filing(visitor(org, actor)))
    print_json({"rules": rules}) if as_json else print_table(rules, _RULES)


def belongs(
    doc_type: DocType,
    folder: Folder,
    org: Org,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have documents of a type suggested for a folder; / for no folder any more."""
    who = visitor(org, actor)

    async def say(duly: Duly) -> list[FilingRule]:
        node_id: UUID | None = await folder_id(duly.documents, who, folder)
        await duly.documents.classes.set_filing(who, doc_type, node_id)
        return [*await duly.documents.classes.filing(who)]

    rules = run(app, say)
    print_json({"rules": rules}) if as_json else print_table(rules, _RULES)
