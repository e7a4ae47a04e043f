"""A worker is killed during an export: another one continues, and every file is complete."""

from __future__ import annotations

import hashlib
import json
import uuid
from pathlib import Path

import psycopg

from duly import Status
from duly.apps.documents.exports.service import Exports
from duly.testing import FreshDatabase
from tests.apps.documents.classification.stored_documents import put, visitor
from tests.apps.documents.killing import doomed
from tests.apps.documents.reading_process import make_app
from tests.worker.working import lose_all_workers, run_until_ended, until

FILES = 5
STOP = """
create function duly.test_stop() returns trigger language plpgsql as $$
begin
    perform pg_advisory_xact_lock(4711, 1) where new.name = 'documents-0003.jsonl';
    return new;
end $$;
create trigger test_stop before insert on duly.artifacts for each row execute function duly.test_stop();
"""
"""Whoever has made the third file waits until the test lets them tell of it."""


async def test_an_export_survives_a_kill_and_every_file_is_whole_and_there_once(
    fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path
) -> None:
    where = (fresh.url, fresh.direct_url, str(tmp_path / "blobs"))
    app, org = make_app(*where), uuid.uuid4()
    await app.create_org(org, "Acme")
    ids = {str(put(sql, org, [f"Seite eins von {n}", "zwei"], name=f"{n}.pdf")) for n in range(FILES)}
    sql.execute("update documents.documents set chunk_count = 4000")  # so that each takes a file of its own
    handle = await Exports(app).documents(visitor(org), format="jsonl")

    sql.execute(STOP)
    sql.execute("select pg_advisory_lock(4711, 1)")
    async with doomed(*where):
        await until(sql, "select exists (select from pg_locks where locktype = 'advisory' and not granted)")
    sql.execute("select pg_advisory_unlock(4711, 1)")
    await lose_all_workers(app, sql)
    kept = sql.execute("select count(*) from duly.artifacts").fetchone()
    assert kept in ((2,), (3,)), "it was killed in the middle"

    job, made = await run_until_ended(app, handle), await handle.result()
    assert (job.status, job.attempt) == (Status.COMPLETED, 2)
    assert (made.documents, made.rows, made.left_out) == (FILES, FILES, 0)
    names = [f"documents-000{n}.jsonl" for n in range(1, FILES + 1)]
    assert [file.name for file in made.artifacts] == names
    rows = sql.execute("select name, sha256, size from duly.artifacts order by name").fetchall()
    assert rows == [(file.name, file.sha256, file.size) for file in made.artifacts]
    lines = []
    for file in made.artifacts:
        data = await handle.read(file.name)
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (file.sha256, file.size)
        lines += [json.loads(line) for line in data.splitlines()]
    assert sorted(line["document_id"] for line in lines) == sorted(ids), "each document once"
    assert all([chunk["page"] for chunk in line["chunks"]] == [1, 2] for line in lines)
    await app.close()
