"""The job types `classify_document`, `train_classifier` and `evaluate_classifier`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.apps.documents.classification.evaluation import as_csv
from duly.apps.documents.classification.models import (
    Classification,
    ClassifierEngine,
    Evaluation,
    Training,
    Verdict,
)
from duly.apps.documents.classification.remote_classifier import Asked, Classifier
from duly.apps.documents.classification.service import CLASSIFY, EVALUATE, TRAIN
from duly.apps.documents.classification.store import classified_texts, save_classification
from duly.apps.documents.classification.training import Example, TooFew, Trained, by_rules, train
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
_MOST_EXAMPLES = 2_000
_MOST_CHUNKS = 60
_FOLDER = "models/classes"
_FILES = ("evaluation.json", "evaluation.csv")


def declare(app: App, remote: Classifier | None = None) -> None:
    """Add the job types to an application; `remote` is asked where a job says so, and somebody agreed."""

    @app.job(CLASSIFY, category=Category.DOCUMENT, subject=subject_from_document)
    async def classify_document(
        ctx: Context, document_id: UUID, engine: ClassifierEngine = "local", consent: bool = False
    ) -> Classification:
        """Say what a document is by the text that was read out of it."""
        who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
        verdict = await _asked(ctx, remote, document_id, consent) if engine == "remote" else None
        async with ctx.transaction() as conn:
            _, texts = await _read(conn, who, document_id, ctx.job.subject_id)
            if verdict is not None:
                return await save_classification(conn, who, document_id, verdict, consent_given_by=who.name)
            return await classified_texts(app, conn, who, document_id, texts)

    @app.job(TRAIN, category=Category.MAINTENANCE, timeout=_TIMEOUT, subject=subject_from_actor)
    async def train_classifier(ctx: Context) -> Training:
        """Make the org's own model of what its people confirmed; it is used if it beats the rules."""
        return await _trained(ctx)

    @app.job(EVALUATE, category=Category.MAINTENANCE, timeout=_TIMEOUT, subject=subject_from_actor)
    async def evaluate_classifier(ctx: Context) -> Evaluation:
        """Measure how well the rules, and a model beside them, tell the confirmed documents apart."""
        return await _evaluated(ctx)


async def _asked(ctx: Context, remote: Classifier | None, document_id: UUID, consent: bool) -> Verdict:
    """What somebody outside says. Nothing leaves the house before all of this is in order."""
    if not consent:
        said = "its text would be sent elsewhere, and nobody has agreed to that"
        raise Fail(said, code="classification.no_consent", blocked=True)
    if remote is None:
        said = "no service is set up that could be asked"
        raise Fail(said, code="classification.not_configured", blocked=True)
    async with ctx.session() as conn:
        who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
        name, texts = await _read(conn, who, document_id, ctx.job.subject_id)
    try:
        return await remote.classify(texts, name)
    except Asked as error:
        if error.passes:
            raise Retry(str(error), after=error.after, code="classification.unavailable") from None
        raise Fail(str(error), code="classification.refused") from None


async def _read(
    conn: Connection, who: DocumentPrincipal, document_id: UUID, subject_id: str | None
) -> tuple[str, Sequence[str]]:
    """The name and the pages of a document that they may change."""
    ids = {"org_id": who.org_id, "document_id": document_id}
    found = await fetch_one(
        conn, "documents/read", {**ids, "hidden_folders": await read_only_folders(conn, who)}
    )
    if found is None:
        raise Fail("there is no such document that you may change", code="document.unknown")
    check_subject(subject_id, document_subject(document_id))
    chunks = await fetch_all(conn, "classes/texts", {**ids, "limit": _MOST_CHUNKS})
    if not chunks:
        raise Fail("it has no text: have it read first", code="document.no_text", blocked=True)
    return found[0]["name"], _pages(chunks)


def _pages(chunks: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """The texts of pages, of the page number and the text of each passage."""
    return tuple("\n\n".join(text for _, text in page) for _, page in groupby(chunks, key=lambda one: one[0]))


async def _examples(ctx: Context) -> Sequence[Example]:
    """What was confirmed. It tells of all folders: only for those to whom none is closed."""
    who = DocumentPrincipal(ctx.job.org_id, ctx.job.actor)
    check_subject(ctx.job.subject_id, private_subject(who))
    async with ctx.session() as conn:
        if await hidden_folders(conn, who):
            raise Fail("some folders are closed to you", code="auth.forbidden", blocked=True)
        found = await fetch_all(conn, "classes/labelled", {"org_id": ctx.job.org_id, "limit": _MOST_EXAMPLES})
    return [Example(_pages(chunks), name, doc_type) for doc_type, name, chunks in found]


async def _trained(ctx: Context) -> Training:
    try:
        made = await asyncio.to_thread(train, await _examples(ctx))
    except TooFew as few:
        raise Fail(str(few), code="classes.too_few", blocked=True) from None
    ctx.check_canceled()
    values = _row(ctx, made)
    await _tidy(ctx)
    async with ctx.transaction() as conn:
        # The file comes and is named while nobody else may tidy up.
        await conn.execute(statement("classes/lock_models"), values)
        if made.is_better:
            values |= await _keep_blob(ctx, made)
        await conn.execute(statement("classes/retire_models"), values)
        await conn.execute(statement("classes/keep_model"), values)
    return Training.model_validate({name: values[name] for name in Training.model_fields})


def _row(ctx: Context, made: Trained) -> dict[str, Any]:
    report = {"rules": made.ruled.model_dump(), "model": made.learned.model_dump()}
    return {
        "org_id": ctx.job.org_id,
        "model_version": made.model.version,
        "blob": None,
        "sha256": made.model.sha256,
        "labels": list(made.model.labels),
        "examples": made.examples,
        "accuracy": made.learned.accuracy,
        "rules_accuracy": made.ruled.accuracy,
        "report": Jsonb(report),
        "job_id": ctx.job.job_id,
        "active": made.is_better,
    }


async def _keep_blob(ctx: Context, made: Trained) -> dict[str, str]:
    """The weights as a file of the org."""
    name = f"{_FOLDER}/{made.model.version}.json"
    save_classification = await ctx.services.blobs.write_file(ctx.job.org_id, _once(made.model.data), name)
    return {"blob": save_classification.name}


async def _tidy(ctx: Context) -> None:
    """Remove the files of models that nobody works with, also those that a crash has left unnamed.

    Whoever makes a model their own holds the same lock from before its file is there until it is named.
    """
    ids, blobs = {"org_id": ctx.job.org_id}, ctx.services.blobs
    async with ctx.session() as conn:
        await conn.execute(statement("classes/lock_models"), ids)
        active = await fetch_one(conn, "classes/active_model", ids)
        await conn.execute(statement("classes/forget_blobs"), ids)
        for name in await blobs.list_files(ctx.job.org_id, _FOLDER):
            if active is None or name != active[1]:
                await blobs.delete_files(ctx.job.org_id, name)


async def _evaluated(ctx: Context) -> Evaluation:
    examples = await _examples(ctx)
    if not examples:
        raise Fail("no type of a document is confirmed yet", code="classes.too_few", blocked=True)
    report = await asyncio.to_thread(_measured, examples)
    measures = {"rules": report.rules} | ({"model": report.model} if report.model else {})
    table = as_csv(measures)
    await ctx.artifact(_FILES[0], report.model_dump_json(indent=1).encode(), content_type="application/json")
    await ctx.artifact(_FILES[1], table, content_type="text/csv; charset=utf-8")
    return report


def _measured(examples: Sequence[Example]) -> Evaluation:
    try:
        made = train(examples)
    except TooFew as few:
        ruled = by_rules(examples)
        return Evaluation(
            documents=ruled.documents, rules=ruled, model=None, why_no_model=str(few), files=_FILES
        )
    return Evaluation(documents=made.examples, rules=made.ruled, model=made.learned, files=_FILES)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
