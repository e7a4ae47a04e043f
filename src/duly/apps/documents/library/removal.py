"""Deleting documents: the rows at once, their files by a job that is enqueued in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID, uuid4

from pydantic import Field

from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.library.file_store import (
    FileStore,
    derived_folder,
    elements_file_name,
    upload_folder,
)
from duly.apps.documents.library.filing import lock_document
from duly.apps.documents.library.quotas import subtract_usage
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.apps.documents.search.index import unpublish
from duly.core.outcome import Snooze
from duly.core.policy import Category, Retention
from duly.core.states import Status
from duly.features.audit.service import Audit
from duly.features.job_results.service import Results
from duly.features.jobs.service import Jobs
from duly.jobs.application import App
from duly.worker.context.context import Context

JOB_TYPE = "remove_files"
ACTIVE = (Status.QUEUED, Status.RUNNING, Status.PARTIAL)
Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Ids = tuple[UUID, ...]
_RUNNING_JOBS_PAUSE = timedelta(seconds=2)
_ABANDONED_AFTER = timedelta(days=1)
"""The age at which a half-written file counts as abandoned by its writer."""


async def remove_document(
    app: App, principal: DocumentPrincipal, document_id: UUID, *, reason: str | None = None
) -> None:
    """Delete a document and everything that was derived from it; the audit trail records the deletion."""
    values = {"org_id": principal.org_id, "document_id": document_id}
    async with app.tenant_session(principal.org_id) as conn:
        document = await lock_document(conn, principal, document_id)
        rows = await fetch_all(conn, "versions/list", {**values, "before": None, "limit": None})
        versions = [row[0] for row in rows]
        hashes = [version["sha256"] for version in versions]
        await unpublish(conn, principal.org_id, document_id)
        await conn.execute(statement("documents/delete"), values)
        await subtract_usage(conn, principal.org_id, size=sum(version["size"] for version in versions))
        await schedule_file_removal(app, conn, principal, documents=[document_id], originals=hashes)
        await Audit(app).record(
            conn,
            principal.org_id,
            "document.deleted",
            str(document_id),
            actor=principal.actor,
            reason=reason,
            name=document.name,
            versions=len(versions),
            sha256=document.sha256,
        )


async def schedule_file_removal(
    app: App,
    conn: Connection,
    principal: DocumentPrincipal,
    *,
    documents: Sequence[UUID] = (),
    uploads: Sequence[UUID] = (),
    originals: Sequence[str] = (),
    outdated: Sequence[UUID] = (),
) -> None:
    """Enqueue the removal of files; the job runs if this transaction commits, and skips referenced files.

    For the documents in `outdated`, it removes the elements of extractions that newer ones have replaced.
    """
    job = app.registry.get(JOB_TYPE).options(
        org_id=principal.org_id, actor=principal.actor, idempotency_key=f"{JOB_TYPE}:{uuid4()}"
    )
    call = job.call(
        documents=list(documents),
        uploads=list(uploads),
        originals=sorted(set(originals)),
        outdated=tuple(outdated),
    )
    await app.enqueue_many([call], conn=conn)


def declare(app: App) -> None:
    """Add the job type to an application."""

    @app.job(JOB_TYPE, category=Category.MAINTENANCE)
    async def remove_files(
        ctx: Context,
        documents: list[UUID],
        uploads: list[UUID],
        originals: list[Sha256],
        outdated: Ids = (),
    ) -> dict[str, int]:
        """Remove files that nothing refers to; the references are checked again when the job runs."""
        file_store = FileStore((await app.resources()).blobs, ctx.job.org_id)
        values = {"org_id": ctx.job.org_id, "documents": documents, "uploads": uploads}
        async with ctx.session() as conn:
            remaining = {row[0] for row in await fetch_all(conn, "documents/list_remaining", values)}
        deleted = [document_id for document_id in documents if document_id not in remaining]
        for document_id in deleted:
            await _erase_jobs(app, ctx, document_id)
        folders = [derived_folder(document_id) for document_id in deleted]
        folders += [upload_folder(upload_id) for upload_id in uploads if upload_id not in remaining]
        for folder in folders:
            await file_store.remove_folder(folder)
        return {
            "folders": len(folders),
            "originals": sum([await _remove_original(ctx, file_store, sha256) for sha256 in originals]),
            "derived": sum([await _remove_outdated(ctx, file_store, one) for one in outdated]),
            "left_over": await file_store.sweep(datetime.now(UTC) - _ABANDONED_AFTER),
        }


async def _erase_jobs(app: App, ctx: Context, document_id: UUID) -> None:
    """Erase the results of jobs about a document, which contain its text, after active jobs have ended."""
    org_id, subject = ctx.job.org_id, document_subject(document_id)
    actor, reason, jobs = ctx.job.actor, "the document was deleted", Jobs(app)
    for status in ACTIVE:
        active = (await jobs.list(org_id, status=status, subject_id=subject)).jobs
        for job in active:
            await jobs.cancel(org_id, job.job_id, actor=actor, reason=reason)
        if active and status is not Status.QUEUED:
            raise Snooze(_RUNNING_JOBS_PAUSE, "jobs about the document still run")
    await Results(app, Retention()).erase(org_id, subject, actor=actor, reason=reason)


async def _remove_outdated(ctx: Context, file_store: FileStore, document_id: UUID) -> int:
    """Remove the elements of ended extractions, except those that the document's text is from.

    The rows are updated first: after a crash in between, the files are still found by listing the store.
    """
    stored = list(await file_store.list_extractions(document_id))
    values = {"org_id": ctx.job.org_id, "document_id": document_id, "extractions": stored}
    async with ctx.session() as conn:
        await conn.execute(statement("extractions/forget_derived"), values)
        outdated = [row[0] for row in await fetch_all(conn, "extractions/list_outdated", values)]
    await file_store.remove_derived(document_id, map(elements_file_name, outdated))
    return len(outdated)


async def _remove_original(ctx: Context, file_store: FileStore, sha256: str) -> bool:
    """Remove a content unless a version refers to it."""
    values = {"org_id": ctx.job.org_id, "sha256": sha256}
    async with ctx.session() as conn:
        # Locked until it is removed: a transaction that files the same content waits, then finds it gone.
        await conn.execute(statement("documents/lock_content"), values)
        row = await fetch_one(conn, "versions/is_referenced", values)
        if row is None or row[0]:
            return False
        await file_store.remove_original(sha256)
    return True
