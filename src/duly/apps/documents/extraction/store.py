"""Extractions as rows: what was asked for, what it takes, how it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from duly.apps.documents.elements import Engine
from duly.apps.documents.models import Extraction
from duly.apps.documents.schema import Connection, fetch_all, fetch_one, statement
from duly.apps.documents.search.index import unpublish
from duly.core.job import JobSnapshot
from duly.core.states import Outcome, Status
from duly.jobs.registry import DomainRecord


async def start(
    conn: Connection, org_id: UUID, document_id: UUID, version: int, job_id: UUID, engine: Engine
) -> Extraction:
    """The extraction of a job that begins, or begins again."""
    ids = {"org_id": org_id, "document_id": document_id}
    found = await fetch_one(
        conn, "extractions/start", {**ids, "version": version, "job_id": job_id, "engine": engine}
    )
    assert found is not None
    row = Extraction.model_validate(found[0])
    await conn.execute(statement("extractions/mark_document"), {**ids, "version": row.version})
    return row


async def list_of(
    conn: Connection, org_id: UUID, document_id: UUID, before: UUID | None, limit: int
) -> Sequence[Extraction]:
    """The extractions of a document, the newest first, from the one after `before` on."""
    values = {"org_id": org_id, "document_id": document_id, "before": before, "limit": limit}
    found = await fetch_all(conn, "extractions/list", values)
    return [Extraction.model_validate(row[0]) for row in found]


async def current(conn: Connection, org_id: UUID, document_id: UUID) -> Extraction | None:
    """The extraction that its text is from."""
    found = await fetch_one(conn, "extractions/read", {"org_id": org_id, "document_id": document_id})
    return None if found is None else Extraction.model_validate(found[0])


async def finish(
    conn: Connection, org_id: UUID, extraction: Extraction, *, result: dict[str, Any], cents: int | None
) -> str | None:
    """It was published; what its document is, as that says."""
    needs_ocr = bool(result["needs_ocr"])
    ids = {"org_id": org_id, "extraction_id": extraction.extraction_id, "pages": result["page_count"]}
    shown = {
        **ids,
        "document_id": extraction.document_id,
        "status": "needs_ocr" if needs_ocr else "extracted",
        "chunks": result["chunk_count"],
    }
    found = await fetch_one(conn, "extractions/show_on_document", shown)
    doc_type = found[0] if found else None
    said = {
        **ids,
        "status": "needs_ocr" if needs_ocr else "done",
        "cents": cents,
        "result": Jsonb({**result, "doc_type": doc_type}),
        "warnings": Jsonb(result["warnings"]),
    }
    await conn.execute(statement("extractions/finish"), said)
    return doc_type


async def cancel(conn: Connection, org_id: UUID, job_id: UUID, reason: str, pages: int) -> None:
    """Its job stops before it has published anything."""
    said = {"status": "canceled", "error_code": None, "error_message": reason, "pages": pages}
    await _settle(conn, org_id, job_id, said)


async def settle(conn: Connection, org_id: UUID, job_id: UUID, job: JobSnapshot | None) -> bool:
    """Its job has ended without publishing: say so. Whether that changed anything."""
    said: dict[str, Any]
    if job is None:
        said = {"error_code": "job.gone", "error_message": "its job is no longer kept", "pages": None}
    else:
        said = {"error_code": job.error_code, "error_message": job.error_message or job.cancel_reason}
        said |= {"pages": job.partial_count}
    return await _settle(conn, org_id, job_id, {**said, "status": _ending(job)})


async def _settle(conn: Connection, org_id: UUID, job_id: UUID, said: Mapping[str, Any]) -> bool:
    ended = await fetch_one(conn, "extractions/settle", {"org_id": org_id, "job_id": job_id, **said})
    if ended is None:
        return False
    document_id, has_no_text = ended
    if has_no_text:
        # What is found of it is of a version that it no longer is.
        await unpublish(conn, org_id, document_id)
    return True


def _ending(job: JobSnapshot | None) -> str:
    if job is not None and job.status is Status.CANCELED:
        return "canceled"
    return "blocked" if job is not None and job.outcome is Outcome.BLOCKED else "failed"


class Extractions:
    """For the reconciler: the rows and their jobs are made to say the same."""

    name = "document_extraction"

    def __init__(self) -> None:
        self._turns = count()

    async def find(self, conn: Any, limit: int) -> Sequence[DomainRecord]:
        """Those under way, and those that ended lately."""
        [row] = await (await conn.execute("select duly.current_org()")).fetchall()
        turn = next(self._turns)
        found = await fetch_all(conn, "extractions/compare", {"org_id": row[0], "limit": limit, "turn": turn})
        return [
            DomainRecord(
                str(extraction_id),
                job_id,
                over=status not in ("queued", "running"),
                reason=f"the extraction is {status}",
            )
            for extraction_id, job_id, status in found
        ]

    async def settle(self, conn: Any, record: DomainRecord, job: JobSnapshot | None) -> bool:
        """Its job has ended, or is no longer kept."""
        [row] = await (await conn.execute("select duly.current_org()")).fetchall()
        return await settle(conn, row[0], record.job_id, job)
