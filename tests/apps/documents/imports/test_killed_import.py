"""A worker is killed during an import: another one continues, and every file is imported once."""

from __future__ import annotations

import asyncio
import hashlib
import json
import uuid
from pathlib import Path

import psycopg

from duly import Actor, Status
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.imports.secrets import SecretStore
from duly.apps.documents.imports.service import Connectors
from duly.apps.documents.library.file_store import FileStore
from duly.testing import FreshDatabase
from tests.apps.documents.imports.fakes.dropbox import FakeDropbox
from tests.apps.documents.imports.importing import GRANT, SYSTEM
from tests.apps.documents.killing import doomed
from tests.apps.documents.reading_process import make_app
from tests.worker.working import WAIT_TIMEOUT, lose_all_workers, run_until_ended, seconds

FILES = {f"{letter}.txt": f"Brief {letter} ".encode() * 200 for letter in "abcde"}


async def test_an_import_survives_a_kill_and_every_file_comes_in_once(
    fresh: FreshDatabase, sql: psycopg.Connection, tmp_path: Path
) -> None:
    org = uuid.uuid4()
    who = DocumentPrincipal(org, Actor.user("anna"))
    await SecretStore(tmp_path / "secrets", {}).of(org).put("file:account", json.dumps(GRANT))
    async with FakeDropbox() as fake:
        for name, data in FILES.items():
            fake.put(f"/Post/{name}", data)
        asked, never = asyncio.Event(), asyncio.Event()

        async def stop_at_the_third(path: str) -> None:
            if fake.downloads == ["/Post/a.txt", "/Post/b.txt", "/Post/c.txt"]:
                asked.set()
                await never.wait()

        fake.on_download = stop_at_the_third
        where = (fresh.url, fresh.direct_url, str(tmp_path / "blobs"), str(tmp_path / "secrets"), fake.url)
        app = make_app(*where)
        await app.create_org(org, "Acme")
        connector = await Connectors(app).create(
            DocumentPrincipal(org, SYSTEM), "dropbox", "Archive", "file:account"
        )
        handle = await Connectors(app).begin_import(who, connector.connector_id, remote_path="/Post")

        async with doomed(*where):
            await asyncio.wait_for(asked.wait(), WAIT_TIMEOUT)
        found = sql.execute("select name from documents.documents order by name").fetchall()
        assert found == [("a.txt",), ("b.txt",)], "it was killed in the middle"

        await lose_all_workers(app, sql)
        job, said = await run_until_ended(app, handle, drain=seconds(0)), await handle.result()
        assert (job.status, job.attempt, said.imported_count) == (Status.COMPLETED, 2, len(FILES))
        assert [path[-5] for path in fake.downloads] == ["a", "b", "c", "c", "d", "e"]

    rows = sql.execute("select name, version, sha256 from documents.documents order by name").fetchall()
    assert rows == [(name, 1, hashlib.sha256(data).hexdigest()) for name, data in FILES.items()]
    file_store = FileStore((await app.resources()).blobs, org)
    for name, _, sha256 in rows:
        assert b"".join([part async for part in file_store.read_original(sha256)]) == FILES[name]
    told = sql.execute("select count(*), count(distinct document_id) from documents.extractions").fetchone()
    assert told == (len(FILES), len(FILES)), "each is read once"
    await app.close()
