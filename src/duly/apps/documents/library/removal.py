"""Deleting documents: the rows at once, their files by a job that belongs to the same transaction."""

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
from duly.apps.documents.library.quotas import discount
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
_PAUSE = timedelta(seconds=2)
_LEFT_OVER = timedelta(days=1)
"""How old a file must be that is half-written: whoever wrote it is gone."""


async def remove(app: App, who: DocumentPrincipal, document_id: UUID, *, reason: str | None = None) -> None:
    """Delete a document and everything that was made of it; the audit trail keeps that it was."""
    values = {"org_id": who.org_id, "document_id": document_id}
    async with app.tenant_session(who.org_id) as conn:
        found = await lock_document(conn, who, document_id)
        everything = {**values, "before": None, "limit": None}
        files = [row[0] for row in await fetch_all(conn, "versions/list", everything)]
        versions = [one["sha256"] for one in files]
        await unpublish(conn, who.org_id, document_id)
        await conn.execute(statement("documents/delete"), values)
        await discount(conn, who.org_id, size=sum(one["size"] for one in files))
        await schedule_file_removal(app, conn, who, documents=[document_id], originals=versions)
        await Audit(app).record(
            conn, who.org_id, "document.deleted", str(document_id),
            actor=who.actor, reason=reason, name=found.name, versions=len(versions), sha256=found.sha256,
        )  # fmt: skip


async def schedule_file_removal(
    app: App,
    conn: Connection,
    who: DocumentPrincipal,
    *,
    documents: Sequence[UUID] = (),
    uploads: Sequence[UUID] = (),
    originals: Sequence[str] = (),
    outdated: Sequence[UUID] = (),
) -> None:
    """Have the files of these removed if this transaction commits, as far as nothing names them any more.

    Of documents that are `outdated` it is what extractions have left that others have replaced.
    """
    job = app.registry.get(JOB_TYPE).options(
        org_id=who.org_id, actor=who.actor, idempotency_key=f"{JOB_TYPE}:{uuid4()}"
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
        """Remove what nobody names: whoever asks, it is looked at again here."""
        file_store = FileStore((await app.resources()).blobs, ctx.job.org_id)
        values = {"org_id": ctx.job.org_id, "documents": documents, "uploads": uploads}
        async with ctx.session() as conn:
            left = {row[0] for row in await fetch_all(conn, "documents/left", values)}
        gone_for_good = [one for one in documents if one not in left]
        for document_id in gone_for_good:
            await _forget_jobs(app, ctx, document_id)
        folders = [derived_folder(one) for one in gone_for_good]
        folders += [upload_folder(one) for one in uploads if one not in left]
        for folder in folders:
            await file_store.remove_folder(folder)
        gone = [await _removed(ctx, file_store, sha256) for sha256 in originals]
        old = [await _replaced(ctx, file_store, document_id) for document_id in outdated]
        left_over = await file_store.sweep(datetime.now(UTC) - _LEFT_OVER)
        done = {"folders": len(folders), "originals": sum(gone)}
        return {**done, "derived": sum(old), "left_over": left_over}


async def _forget_jobs(app: App, ctx: Context, document_id: UUID) -> None:
    """Erase what jobs about it brought: its text is in there. First those must end that still bring some."""
    org_id, subject = ctx.job.org_id, document_subject(document_id)
    jobs = Jobs(app)
    for status in ACTIVE:
        found = (await jobs.list(org_id, status=status, subject_id=subject)).jobs
        for job in found:
            await jobs.cancel(org_id, job.job_id, actor=ctx.job.actor, reason="the document was deleted")
        if found and status is not Status.QUEUED:
            raise Snooze(_PAUSE, "jobs about the document still run")
    await Results(app, Retention()).erase(
        org_id, subject, actor=ctx.job.actor, reason="the document was deleted"
    )


async def _replaced(ctx: Context, file_store: FileStore, document_id: UUID) -> int:
    """Remove what extractions have left that are over, and not what its text is from.

    Their rows say so first: after a crash the files are found again by what is there.
    """
    found = list(await file_store.list_extractions(document_id))
    values = {"org_id": ctx.job.org_id, "document_id": document_id, "extractions": found}
    async with ctx.session() as conn:
        await conn.execute(statement("extractions/forget_derived"), values)
        old = [row[0] for row in await fetch_all(conn, "extractions/list_outdated", values)]
    await file_store.remove_derived(document_id, [elements_file_name(extraction_id) for extraction_id in old])
    return len(old)


async def _removed(ctx: Context, file_store: FileStore, sha256: str) -> bool:
    values = {"org_id": ctx.job.org_id, "sha256": sha256}
    async with ctx.session() as conn:
        # Held until it is gone: whoever files the same content meanwhile waits, and sees that it is.
        await conn.execute(statement("documents/lock_content"), values)
        named = await fetch_one(conn, "versions/is_named", values)
        if named is None or named[0]:
            return False
        await file_store.remove_original(sha256)
    return True
