"""`duly docs`: what documents are, and where each kind belongs."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import typer

from duly.app import Duly
from duly.apps.documents.classification.models import ClassifierEngine, FilingRule
from duly.apps.documents.cli.extraction import Wait, follow
from duly.apps.documents.cli.shared import DocumentId, FolderPath, folder_id, run, visitor
from duly.apps.documents.models import Document
from duly.cli.options import ActorName, After, AppName, AsJson, Org, Size
from duly.cli.output import Columns, print_facts, print_json, print_table

_RULES: Columns = {"type": "doc_type", "folder": "node_id"}
_SAID: Columns = {
    "type": "doc_type",
    "confidence": "confidence",
    "review": "review",
    "by": "model_version",
    "consent": "consent_given_by",
    "version": "version",
    "said": "created_at",
}
_EVIDENCE: Columns = {
    "speaks for": "doc_type",
    "weight": "weight",
    "page": "page",
    "where": "zone",
    "text": "text",
}
_CONFIRMED: Columns = {"confirmed": "doc_type", "by": "confirmed_by", "at": "confirmed_at"}
_UNSURE: Columns = {
    "document": lambda one: one.document.document_id,
    "name": lambda one: one.document.name,
    "perhaps": "guess",
    "confidence": lambda one: one.classification.confidence,
}
_MODELS: Columns = {
    "model": "model_version",
    "active": "active",
    "examples": "examples",
    "accuracy": "accuracy",
    "of the rules": "rules_accuracy",
    "trained": "trained_at",
}
_FACTS = ("document_id", "name", "doc_type", "doc_type_confidence", "doc_type_confirmed")
DocType = Annotated[str, typer.Argument(metavar="TYPE", help="As invoice.", show_default=False)]


def classify(
    document: DocumentId,
    org: Org,
    engine: Annotated[
        ClassifierEngine, typer.Option(help="By the rules and the org's model, or by a service elsewhere.")
    ] = "local",
    consent: Annotated[
        bool, typer.Option("--consent", help="The beginning of its text may be sent there.")
    ] = False,
    wait: Wait = False,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """Have it said anew what a document is."""
    if engine == "remote" and not consent:
        raise typer.BadParameter(
            "it sends text elsewhere: agree to that with --consent", param_hint="--engine"
        )
    who = visitor(org, actor)

    async def begin(duly: Duly) -> UUID:
        return (await duly.documents.classes.classify(who, document, engine=engine, consent=consent)).job_id

    follow(app, org, begin, wait=wait, as_json=as_json)


def why(
    document: DocumentId, org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False
) -> None:
    """What was said of the type of a document, by whom and why; the newest first."""
    history = run(app, lambda duly: duly.documents.classes.history(visitor(org, actor), document))
    if as_json:
        print_json(history)
        return
    print_table(history.classifications, _SAID)
    if history.classifications:
        print_table(history.classifications[0].evidence, _EVIDENCE)
    if history.confirmations:
        print_table(history.confirmations, _CONFIRMED)


def review(
    org: Org,
    limit: Size = 50,
    after: After = None,
    actor: ActorName = None,
    app: AppName = None,
    as_json: AsJson = False,
) -> None:
    """The documents whose type is too unsure to be believed; `confirm` says what one is."""
    page = run(app, lambda duly: duly.documents.classes.review(visitor(org, actor), limit=limit, after=after))
    if as_json:
        print_json({"unsure": page.unsure, "after": page.after})
    else:
        print_table(page.unsure, _UNSURE, after=page.after)


def models(org: Org, actor: ActorName = None, app: AppName = None, as_json: AsJson = False) -> None:
    """What was learned from the org's confirmations, the newest first."""
    found = run(app, lambda duly: duly.documents.classes.models(visitor(org, actor)))
    print_json({"models": found}) if as_json else print_table(found, _MODELS)


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
    folder: FolderPath,
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
