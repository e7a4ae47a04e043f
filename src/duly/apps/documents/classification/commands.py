"""`duly docs`: classify documents, confirm their types, train the classifier, file by type."""

from __future__ import annotations

from typing import Annotated

import typer

from duly.app import Duly
from duly.apps.documents.classification.models import ClassifierEngine
from duly.apps.documents.classification.service import UnsurePage
from duly.apps.documents.command_group import (
    DocumentId,
    FolderPath,
    JobFollower,
    Principal,
    docs,
    find_folder,
)
from duly.apps.documents.models import Document
from duly.cli.command import Rows
from duly.cli.options import Paging, argument
from duly.cli.output import Columns, Output, columns, print_facts, print_table

_RULES = columns(type="doc_type", folder="node_id")
_CLASSIFICATIONS = columns(
    *("confidence", "review", "version", "created_at"),
    type="doc_type",
    model="model_version",
    consent="consent_given_by",
)
_EVIDENCE = columns("weight", "page", "zone", "text", evidence_for="doc_type")
_CONFIRMATIONS = columns("confirmed_at", confirmed="doc_type", by="confirmed_by")
_UNSURE: Columns = {
    "document": lambda one: one.document.document_id,
    "name": lambda one: one.document.name,
    "best guess": "guess",
    "confidence": lambda one: one.classification.confidence,
}
_DOCUMENT_FIELDS = ("document_id", "name", "doc_type", "doc_type_confidence", "doc_type_confirmed")
DocType = Annotated[str, argument("Name the type, as in invoice.", "TYPE")]


@docs.command()
async def classify(
    duly: Duly,
    document: DocumentId,
    principal: Principal,
    follower: JobFollower,
    engine: Annotated[
        ClassifierEngine, typer.Option(help="Choose the rules and the org's model, or a service.")
    ] = "local",
    consent: Annotated[
        bool, typer.Option("--consent", help="Allow sending the beginning of the text to the service.")
    ] = False,
) -> Output | None:
    """Set the type of a document by classifying it again."""
    if engine == "remote" and not consent:
        raise typer.BadParameter(
            "the remote engine sends text to a service: agree with --consent", param_hint="--engine"
        )
    handle = await duly.documents.classification.classify(principal, document, engine=engine, consent=consent)
    return await follower.follow(duly, principal, handle.job_id)


@docs.command()
async def why(duly: Duly, document: DocumentId, principal: Principal) -> Output:
    """Show the classifications and confirmations of a document."""
    history = await duly.documents.classification.history(principal, document)

    def print_history() -> None:
        print_table(history.classifications, _CLASSIFICATIONS)
        if history.classifications:
            print_table(history.classifications[0].evidence, _EVIDENCE)
        if history.confirmations:
            print_table(history.confirmations, _CONFIRMATIONS)

    return Output(history, print_history)


@docs.command(columns=_UNSURE)
async def review(duly: Duly, principal: Principal, paging: Paging) -> UnsurePage:
    """List the documents whose type needs review."""
    return await duly.documents.classification.review(principal, **paging)


@docs.command()
async def confirm(duly: Duly, document: DocumentId, doc_type: DocType, principal: Principal) -> Output:
    """Set the type of a document; it outranks classifications."""
    await duly.documents.classification.confirm(principal, document, doc_type)
    confirmed: Document = await duly.documents.get(principal, document)
    return Output(confirmed, lambda: print_facts(confirmed, _DOCUMENT_FIELDS))


@docs.command()
async def train(duly: Duly, principal: Principal, follower: JobFollower) -> Output | None:
    """Create the org's model from the confirmed types."""
    handle = await duly.documents.classification.train(principal)
    return await follower.follow(duly, principal, handle.job_id)


@docs.command()
async def evaluate(duly: Duly, principal: Principal, follower: JobFollower) -> Output | None:
    """Check how accurate the classification is."""
    handle = await duly.documents.classification.evaluate(principal)
    return await follower.follow(duly, principal, handle.job_id)


@docs.command(
    columns=columns(
        *("active", "examples", "accuracy", "rules_accuracy", "trained_at"), model="model_version"
    )
)
async def models(duly: Duly, principal: Principal) -> Rows:
    """List the models trained on the org's confirmations."""
    return {"models": await duly.documents.classification.models(principal)}


@docs.command(columns=_RULES)
async def filing(duly: Duly, principal: Principal) -> Rows:
    """List the folder that is suggested for each type."""
    return {"rules": await duly.documents.classification.filing(principal)}


@docs.command(columns=_RULES)
async def belongs(duly: Duly, doc_type: DocType, folder: FolderPath, principal: Principal) -> Rows:
    """Set the folder that is suggested for a type; / removes it."""
    node_id = await find_folder(duly.documents, principal, folder)
    await duly.documents.classification.set_filing(principal, doc_type, node_id)
    return {"rules": await duly.documents.classification.filing(principal)}
