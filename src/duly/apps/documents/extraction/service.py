"""Asking for an extraction: its row and its job are one transaction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID, uuid4

from duly.apps.documents.elements import Engine
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.folders.job_subjects import document_subject
from duly.apps.documents.schema import Connection, fetch_one, statement
from duly.jobs.application import App

JOB_TYPE = "extract_document"
REMOTE_ENGINES: frozenset[Engine] = frozenset({"unstructured_fast", "unstructured_hires"})
"""Engines that send the file elsewhere: only with consent."""


class StartedExtraction(NamedTuple):
    """An extraction under way."""

    extraction_id: UUID
    job_id: UUID
    created: bool
    """Whether it is a new one."""


class ExtractionTarget(NamedTuple):
    """What is to be read."""

    document_id: UUID
    version: int
    pages: int | None = None
    """How many it had when it was read before."""


async def start_extraction(
    app: App,
    conn: Connection,
    who: DocumentPrincipal,
    target: ExtractionTarget,
    engine: Engine,
    *,
    consent: bool = False,
    cents_per_page: Mapping[Engine, float] | None = None,
) -> StartedExtraction:
    """Have a version read, or find the extraction that does so already."""
    values = {"org_id": who.org_id, "document_id": target.document_id, "version": target.version}
    agreed = consent and engine in REMOTE_ENGINES
    there = await fetch_one(conn, "extractions/active", {**values, "engine": engine, "consent": agreed})
    if there is not None:
        return StartedExtraction(there[0], there[1], created=False)
    extraction_id = uuid4()
    job = app.registry.get(JOB_TYPE).options(
        org_id=who.org_id,
        actor=who.actor,
        subject_id=document_subject(target.document_id),
        idempotency_key=f"extraction:{extraction_id}",  # asked for again later, it is another one
    )
    [handle] = await app.enqueue_many([job.call(document_id=target.document_id, engine=engine)], conn=conn)
    said = {
        **values,
        "engine": engine,
        "job_id": handle.job_id,
        "consent_by": who.name if agreed else None,
        "estimated_pages": target.pages,
        "estimated_cost_cents": cost(target.pages, (cents_per_page or {}).get(engine, 0.0)),
    }
    await conn.execute(statement("extractions/create"), {**said, "extraction_id": extraction_id})
    return StartedExtraction(extraction_id, handle.job_id, created=True)


def cost(pages: int | None, cents_per_page: float) -> int | None:
    """What so many pages cost, in whole cents, rounded up."""
    return None if pages is None else math.ceil(round(pages * cents_per_page, 6))
