"""The job types `classify_document`, `train_classifier` and `evaluate_classifier`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.apps.documents.classification import classifier
from duly.apps.documents.classification.evaluation import confusion_csv
from duly.apps.documents.classification.models import (
    Classification,
    ClassifierEngine,
    Evaluation,
    Training,
    Verdict,
)
from duly.apps.documents.classification.remote_classifier import Classifier, RemoteClassifierError
from duly.apps.documents.classification.service import CLASSIFY, EVALUATE, TRAIN
from duly.apps.documents.classification.training import (
    Example,
    TooFewExamples,
    TrainedModel,
    evaluate_rules,
    train,
)
from duly.apps.documents.consent import require_consent
from duly.apps.documents.folders.access import DocumentPrincipal, hidden_folders, read_only_folders
from duly.apps.documents.folders.job_subjects import (
    check_subject,
    document_subject,
    private_subject,
    subject_from_actor,
    subject_from_document,
)
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.core.outcome import Fail, Retry
from duly.core.policy import Category
from duly.jobs.application import App
from duly.worker.context.context import Context

_TIMEOUT = timedelta(minutes=30)
_MAX_EXAMPLES = 2_000
_MAX_PASSAGES = 60
_MODEL_FOLDER = "models/classes"
_EVALUATION_FILES = ("evaluation.json", "evaluation.csv")


def declare(app: App, remote: Classifier | None = None) -> None:
    """Declare the job types; `remote` classifies for jobs with `engine="remote"` and consent."""

    @app.job(CLASSIFY, category=Category.DOCUMENT, subject=subject_from_document)
    async def classify_document(
        ctx: Context, document_id: UUID, engine: ClassifierEngine = "local", consent: bool = False
    ) -> Classification:
        """Classify a document by its extracted text."""
        principal = _principal(ctx)
        verdict = await _classify_remotely(ctx, remote, document_id, consent) if engine == "remote" else None
        async with ctx.transaction() as conn:
            _, texts = await _read_document(conn, principal, document_id, ctx.job.subject_id)
            if verdict is not None:
                return await classifier.save_classification(
                    conn, principal, document_id, verdict, consent_given_by=principal.name
                )
            return await classifier.classify_document(app, conn, principal, document_id, texts)

    @app.job(TRAIN, category=Category.MAINTENANCE, timeout=_TIMEOUT, subject=subject_from_actor)
    async def train_classifier(ctx: Context) -> Training:
        """Train the org's model on its confirmed documents; activate it if it beats the rules."""
        return await _train(ctx)

    @app.job(EVALUATE, category=Category.MAINTENANCE, timeout=_TIMEOUT, subject=subject_from_actor)
    async def evaluate_classifier(ctx: Context) -> Evaluation:
        """Evaluate the rules and a cross-validated model on the confirmed documents."""
        return await _evaluate(ctx)


def _principal(ctx: Context) -> DocumentPrincipal:
    return DocumentPrincipal(ctx.job.org_id, ctx.job.actor)


async def _classify_remotely(
    ctx: Context, remote: Classifier | None, document_id: UUID, consent: bool
) -> Verdict:
    """Classify by the external service. Nothing is sent without consent and access to the document."""
    require_consent(consent, "classification", "the text")
    if remote is None:
        message = "no external classifier is configured"
        raise Fail(message, code="classification.not_configured", blocked=True)
    async with ctx.session() as conn:
        name, texts = await _read_document(conn, _principal(ctx), document_id, ctx.job.subject_id)
    try:
        return await remote.classify(texts, name)
    except RemoteClassifierError as error:
        if error.is_retryable:
            raise Retry(str(error), after=error.retry_after, code="classification.unavailable") from None
        raise Fail(str(error), code="classification.refused") from None


async def _read_document(
    conn: Connection, principal: DocumentPrincipal, document_id: UUID, subject_id: str | None
) -> tuple[str, Sequence[str]]:
    """Return the name and the page texts of a document that the principal may change."""
    ids = {"org_id": principal.org_id, "document_id": document_id}
    read_only = await read_only_folders(conn, principal)
    row = await fetch_one(conn, "documents/read", {**ids, "hidden_folders": read_only})
    if row is None:
        raise Fail("no such document, or you may not change it", code="document.unknown")
    check_subject(subject_id, document_subject(document_id))
    passages = await fetch_all(conn, "classifications/read_texts", {**ids, "limit": _MAX_PASSAGES})
    if not passages:
        raise Fail("the document has no text: extract it first", code="document.no_text", blocked=True)
    return row[0]["name"], _join_pages(passages)


def _join_pages(passages: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Return the text of each page from (page number, text) pairs."""
    pages = groupby(passages, key=lambda passage: passage[0])
    return tuple("\n\n".join(text for _, text in page) for _, page in pages)


async def _read_examples(ctx: Context) -> Sequence[Example]:
    """Return the confirmed documents; the principal must see all folders."""
    principal = _principal(ctx)
    check_subject(ctx.job.subject_id, private_subject(principal))
    async with ctx.session() as conn:
        if await hidden_folders(conn, principal):
            raise Fail("you may not see some folders: ask an admin", code="auth.forbidden", blocked=True)
        values = {"org_id": principal.org_id, "limit": _MAX_EXAMPLES}
        rows = await fetch_all(conn, "classifications/list_examples", values)
    return [Example(_join_pages(passages), name, doc_type) for doc_type, name, passages in rows]


async def _train(ctx: Context) -> Training:
    try:
        trained = await asyncio.to_thread(train, await _read_examples(ctx))
    except TooFewExamples as error:
        raise Fail(str(error), code="classes.too_few", blocked=True) from None
    ctx.check_canceled()
    values = _model_row(ctx, trained)
    await _remove_unused_models(ctx)
    async with ctx.transaction() as conn:
        # Under the lock until the row names the file: no other job removes it as unused.
        await conn.execute(statement("class_models/lock"), values)
        if trained.is_better:
            path = f"{_MODEL_FOLDER}/{trained.model.version}.json"
            file = await ctx.services.blobs.write_file(ctx.job.org_id, _stream(trained.model.data), path)
            values["blob"] = file.name
        await conn.execute(statement("class_models/deactivate"), values)
        await conn.execute(statement("class_models/save"), values)
    return Training.model_validate({name: values[name] for name in Training.model_fields})


def _model_row(ctx: Context, trained: TrainedModel) -> dict[str, Any]:
    report = {"rules": trained.rules_measure.model_dump(), "model": trained.model_measure.model_dump()}
    return {
        "org_id": ctx.job.org_id,
        "model_version": trained.model.version,
        "blob": None,
        "sha256": trained.model.sha256,
        "labels": list(trained.model.labels),
        "examples": trained.examples,
        "accuracy": trained.model_measure.accuracy,
        "rules_accuracy": trained.rules_measure.accuracy,
        "report": Jsonb(report),
        "job_id": ctx.job.job_id,
        "active": trained.is_better,
    }


async def _stream(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def _remove_unused_models(ctx: Context) -> None:
    """Remove the files of inactive models, and files without a row that a crash has left.

    Training holds the same lock from before it writes a file until a row names it.
    """
    ids, blobs = {"org_id": ctx.job.org_id}, ctx.services.blobs
    async with ctx.session() as conn:
        await conn.execute(statement("class_models/lock"), ids)
        active = await fetch_one(conn, "class_models/read_active", ids)
        await conn.execute(statement("class_models/forget_blobs"), ids)
        for name in await blobs.list_files(ctx.job.org_id, _MODEL_FOLDER):
            if active is None or name != active[1]:
                await blobs.delete_files(ctx.job.org_id, name)


async def _evaluate(ctx: Context) -> Evaluation:
    examples = await _read_examples(ctx)
    if not examples:
        raise Fail("no document has a confirmed type", code="classes.too_few", blocked=True)
    evaluation = await asyncio.to_thread(_evaluate_examples, examples)
    measures = {"rules": evaluation.rules} | ({"model": evaluation.model} if evaluation.model else {})
    report, table = _EVALUATION_FILES
    await ctx.artifact(report, evaluation.model_dump_json(indent=1).encode(), content_type="application/json")
    await ctx.artifact(table, confusion_csv(measures), content_type="text/csv; charset=utf-8")
    return evaluation


def _evaluate_examples(examples: Sequence[Example]) -> Evaluation:
    try:
        trained = train(examples)
    except TooFewExamples as error:
        rules = evaluate_rules(examples)
        return Evaluation(
            documents=rules.documents,
            rules=rules,
            model=None,
            why_no_model=str(error),
            files=_EVALUATION_FILES,
        )
    return Evaluation(
        documents=trained.examples,
        rules=trained.rules_measure,
        model=trained.model_measure,
        files=_EVALUATION_FILES,
    )
