"""A worker is killed in the middle of a long document: another one resumes."""

from __future__ import annotations

import uuid
from pathlib import Path

import psycopg

from duly import Actor, Status
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.maintenance.reaper import Reaper
from duly.testing import FreshDatabase
from tests.apps.documents.files import pdf
from tests.apps.documents.killing import doomed
from tests.apps.documents.reading_process import make_app
from tests.apps.documents.stage import add
from tests.worker.working import run_until_ended, until

PAGES = 300


async def test_a_long_document_survives_a_kill_and_no_page_is_read_twice(
    fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path
) -> None:
    where = (fresh.url, fresh.direct_url, str(tmp_path / "blobs"))
    app, org = make_app(*where), uuid.uuid4()
    await app.create_org(org, "Acme")
    who = DocumentPrincipal(org, Actor.user("anna"))
    book = pdf([f"Seite {n} handelt von Thema{n} und nichts anderem." for n in range(1, PAGES + 1)])
    filed = await add(app, who, book, "buch.pdf", engine="fast")
    [row] = await app.documents.extractions(who, filed.document_id)
    assert row.job_id is not None

    async with doomed(*where):
        await until(sql, "select count(*) >= 100 from duly.result_snapshots")
    stored = sql.execute("select count(*) from duly.result_snapshots").fetchone()
    assert stored is not None
    assert 100 <= stored[0] < PAGES, "it was killed in the middle"

    await until(sql, "select heartbeat_at < now() - interval '1 second' from duly.workers")
    while sql.execute("select exists (select from duly.claims)").fetchone() == (True,):
        await Reaper(app).once()
    job = await run_until_ended(app, app.handle(row.job_id, org_id=org))
    assert (job.status, job.attempt) == (Status.COMPLETED, 2)
    partials = sql.execute(
        "select count(*), count(distinct attempt) from duly.event_log where event_type = 'job.partial'"
    ).fetchone()
    assert partials == (PAGES, 2), "one event per page, from both attempts"

    document, [row] = (
        await app.documents.get(who, filed.document_id),
        await app.documents.extractions(who, filed.document_id),
    )
    chunks = sql.execute(
        "select count(*), count(distinct page_number), count(distinct extraction_id)"
        " from documents.document_chunks"
    ).fetchone()
    assert (document.status, document.page_count, row.status, row.actual_pages) == (
        "extracted",
        PAGES,
        "done",
        PAGES,
    )
    assert chunks == (document.chunk_count, PAGES, 1)
    assert [hit.page for hit in (await app.documents.search(who, "Thema217")).hits] == [217]
    await app.close()
