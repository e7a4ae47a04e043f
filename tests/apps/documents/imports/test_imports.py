"""Imports with every provider: each file becomes one document, whatever fails on the way."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import timedelta

import pytest

from duly import Actor
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.imports.service import Connectors
from duly.apps.documents.library import removal
from duly.apps.documents.library.quotas import Quotas
from duly.apps.documents.options import DocumentOptions
from tests.apps.documents.imports.importing import GRANT, SYSTEM, Site
from tests.worker.working import (
    lose_all_workers,
    run_until_ended,
    seconds,
    settle_attempts,
    silent_worker,
    until,
    working,
)

A, B, C = b"%PDF-1.7 alpha", b"beta " * 1000, b"gamma"


def fill(site: Site) -> None:
    site.fake.put("/Post/a.pdf", A)
    site.fake.put("/Post/2026/b.txt", B)
    site.fake.put("/Post/2026/Mai/c.md", C)
    site.fake.put("/Privat/d.txt", b"not asked for")


async def test_a_folder_is_imported_once_and_then_only_its_changes(site: Site) -> None:
    fill(site)
    site.fake.page = 1
    job, first = await site.bring("/Post")
    assert (job.outcome, first.imported_count, len(first.document_ids)) == ("succeeded", 3, 3)
    assert site.documents() == [("a.pdf", 1), ("b.txt", 1), ("c.md", 1)]
    assert await site.content("b.txt") == B
    kinds = site.sql.execute("select media_type from documents.documents order by name").fetchall()
    assert [kind for (kind,) in kinds] == ["application/pdf", "text/plain", "text/markdown"]

    _, second = await site.bring("/Post")
    assert (second.imported_count, second.document_ids, second.skipped_count) == (0, [], 0)

    site.fake.put("/Post/2026/b.txt", b"another beta")
    site.fake.put("/Post/2026/e.txt", b"epsilon")
    site.fake.put("/Privat/f.txt", b"not asked for either")
    site.fake.remove("/Post/a.pdf")
    _, third = await site.bring("/Post")
    assert (third.imported_count, third.removed_count) == (2, 1)
    assert site.documents() == [("a.pdf", 1), ("b.txt", 2), ("c.md", 1), ("e.txt", 1)]
    assert await site.content("b.txt") == b"another beta"
    assert len(site.fake.downloads) == 5, "nothing is fetched twice"
    gone = site.sql.execute("select remote_path from documents.connector_files where removed_at is not null")
    assert [path.rpartition("/")[2] for (path,) in gone.fetchall()] == ["a.pdf"]

    site.fake.expired_cursors = True
    _, again = await site.bring("/Post")
    assert (again.imported_count, again.skipped_count) == (0, 3), "all is listed, and nothing taken"


async def test_an_exceeded_quota_blocks_the_import_and_leaves_no_content(site: Site) -> None:
    fill(site)
    removal.declare(site.app)
    site.app.included["documents"] = DocumentOptions(quotas=Quotas(documents_max=1))
    job = await run_until_ended(site.app, await site.ask("/Post"))
    assert (job.outcome, job.error_code, job.attempt) == ("blocked", "document.quota", 1)
    async with working(site.app):
        await until(site.sql, "select status = 'completed' from duly.jobs where job_type = 'remove_files'")
    assert len(site.documents()) == 1
    resources = await site.app.resources()
    assert len(await resources.blobs.list_files(site.org, "original")) == 1


async def test_files_are_taken_by_their_names_or_ids(site: Site) -> None:
    fill(site)
    wanted = site.fake.at("/Post/2026/b.txt").remote_id.removeprefix("id:")
    job, said = await site.bring("/Post", "a.pdf", f"id:{wanted}", "there/is/none.pdf")
    assert (job.outcome, said.imported_count, said.failed_count) == ("succeeded", 2, 1)
    assert [(one.path, one.error_code) for one in said.failures] == [
        ("there/is/none.pdf", "import.not_found")
    ]
    assert site.documents() == [("a.pdf", 1), ("b.txt", 1)]
    _, again = await site.bring("/Post", "a.pdf")
    assert (again.imported_count, again.skipped_count, len(site.fake.downloads)) == (0, 1, 2)


async def test_an_import_waits_for_a_busy_provider_and_keeps_imported_files(site: Site) -> None:
    fill(site)
    site.fake.busy = ["list"]
    site.fake.retry_after = "3000"
    handle = await site.ask("/Post")
    await settle_attempts(site.app)
    waits = site.sql.execute("select run_at - now() from duly.scheduled").fetchone()
    assert waits is not None
    assert timedelta(minutes=45) < waits[0] < timedelta(minutes=55)

    async def busy_after_one(path: str) -> None:
        site.fake.on_download = None
        site.fake.busy = ["download"]

    site.fake.on_download = busy_after_one
    site.now()
    await settle_attempts(site.app)
    assert len(site.documents()) == 1
    assert site.sql.execute("select count(*) from documents.connector_cursors").fetchone() == (0,)
    site.now()
    job = await run_until_ended(site.app, handle)
    assert (await handle.result()).imported_count == 3
    assert (job.attempt, len(site.documents()), len(site.fake.downloads)) == (2, 3, 3), (
        "progress costs no try"
    )


async def test_an_expired_token_is_refreshed_once_and_saved(site: Site) -> None:
    fill(site)
    site.fake.rotates = True
    site.fake.tokens = {"access-9"}
    handles = [await site.ask("/Post"), await site.ask("/Privat")]
    for handle in handles:
        await run_until_ended(site.app, handle)
    assert (site.fake.renewals, len(site.documents())) == (1, 4)
    kept = json.loads(await site.secrets.of(site.org).get("file:account"))
    assert (kept["access_token"], kept["refresh_token"]) == ("access-1", "refresh-1")
    assert kept["client_secret"] == GRANT["client_secret"]


@pytest.mark.parametrize("provider", ["dropbox"])
async def test_two_workers_refresh_a_token_once(site: Site) -> None:
    fill(site)
    site.fake.tokens = {"access-9"}
    handles = [await site.ask("/Post"), await site.ask("/Privat")]
    async with asyncio.timeout(60), site.app.worker(), site.app.worker():
        for handle in handles:
            await handle.wait(60)
    assert (site.fake.renewals, len(site.documents())) == (1, 4)


@pytest.mark.parametrize("provider", ["onedrive"])
async def test_a_revoked_access_blocks_the_import(site: Site) -> None:
    fill(site)
    site.fake.tokens, site.fake.revoked = set(), True
    job = await run_until_ended(site.app, await site.ask("/Post"))
    assert (job.outcome, job.error_code, job.attempt) == ("blocked", "connector.unauthorized", 1)
    await site.secrets.of(site.org).put("file:account", "an access token without anything else")
    job = await run_until_ended(site.app, await site.ask("/Post"))
    assert (job.outcome, job.error_code) == ("blocked", "connector.unauthorized")
    assert site.documents() == []


async def test_a_damaged_download_is_repeated_and_never_filed(site: Site) -> None:
    fill(site)
    site.fake.damage = {"/Post/a.pdf": ["cut", "short"], "/Post/2026/b.txt": ["flipped"] * 3}
    job, said = await site.bring("/Post")
    assert (job.outcome, said.imported_count, said.failed_count) == ("partially_succeeded", 2, 1)
    assert job.failure_summary[0]["error_code"] == "import.damaged"
    assert site.documents() == [("a.pdf", 1), ("c.md", 1)]
    assert await site.content("a.pdf") == A
    blobs = (await site.app.resources()).blobs
    assert len(await blobs.list_files(site.org, "original")) == 2, "of the damaged ones nothing is kept"
    assert await blobs.list_files(site.org, "tmp") == []
    # The cursor waited for it.
    _, again = await site.bring("/Post")
    assert (again.imported_count, await site.content("b.txt")) == (1, B)


async def test_a_file_that_changes_during_the_download_is_imported_in_its_new_state(site: Site) -> None:
    fill(site)

    async def change(path: str) -> None:
        if path == "/Post/a.pdf":
            site.fake.on_download = None
            site.fake.put(path, b"%PDF-1.7 omega!")

    site.fake.on_download = change
    _, said = await site.bring("/Post")
    assert (said.imported_count, await site.content("a.pdf")) == (3, b"%PDF-1.7 omega!")
    _, again = await site.bring("/Post")
    assert again.imported_count == 0
    assert ("a.pdf", 1) in site.documents()


async def test_a_later_attempt_downloads_only_missing_files(site: Site) -> None:
    fill(site)
    reached = asyncio.Event()

    async def hang(path: str) -> None:
        if len(site.fake.downloads) == 2 and not reached.is_set():
            reached.set()
            await asyncio.Event().wait()

    site.fake.on_download = hang
    handle = await site.ask("/Post")
    async with silent_worker(site.app, site.sql, drain=seconds(0)):
        await reached.wait()
        await lose_all_workers(site.app, site.sql)
    # As if the worker had died between filing the file and saying so.
    assert site.sql.execute("delete from duly.result_snapshots").rowcount == 1
    site.sql.execute("update duly.job_states set partial_count = 0")
    site.now()
    await run_until_ended(site.app, handle)
    said = await handle.result()
    assert (said.imported_count, said.skipped_count, len(site.documents())) == (3, 0, 3)
    assert len(site.fake.downloads) == 4, "the one that was cut off is fetched again, the finished one is not"


async def test_names_from_elsewhere_are_only_names(site: Site) -> None:
    hostile = [
        "/N/..%2F..%2Fetc%2Fpasswd",
        "/N/" + "x" * 300 + ".pdf",
        "/N/a\u202efdp.exe",
        "/N/b\0c.txt",
        "/N/...",
    ]
    for number, path in enumerate(hostile):
        site.fake.put(path, b"content %d" % number)
    _, said = await site.bring("/N")
    names = [name for name, _ in site.documents()]
    assert said.imported_count == 5
    assert sorted(names) == sorted(
        ["..%2F..%2Fetc%2Fpasswd", "x" * 251 + ".pdf", "a_fdp.exe", "b_c.txt", "unnamed"]
    )


@pytest.mark.parametrize("provider", ["dropbox"])
async def test_empty_files_are_refused_and_equal_files_share_a_document(site: Site) -> None:
    site.fake.put("/P/empty.txt", b"")
    site.fake.put("/P/large.bin", bytes(9 * 2**20))
    site.fake.put("/P/two.txt", b"the same")
    site.fake.put("/P/one.txt", b"the same")
    job, said = await site.bring("/P")
    assert (job.outcome, said.imported_count, said.failed_count) == ("succeeded", 3, 1)
    assert [one.error_code for one in said.failures] == ["document.empty"]
    assert len(said.document_ids) == len(site.documents()) == 2, "the same content"
    _, again = await site.bring("/P")
    assert (again.imported_count, again.failed_count) == (0, 0), "the cursor has moved on"
    # Of two that were the same, one changes: the other stays what it was.
    site.fake.put("/P/one.txt", b"not the same")
    await site.bring("/P")
    assert site.documents() == [("large.bin", 1), ("one.txt", 1), ("two.txt", 1)]
    assert await site.content("two.txt") == b"the same"


@pytest.mark.parametrize("provider", ["dropbox"])
async def test_a_deleted_document_is_imported_again_only_if_it_changes_or_is_named(site: Site) -> None:
    site.fake.put("/P/a.pdf", A)
    site.fake.put("/P/c.md", C)
    await site.bring("/P")
    site.sql.execute("delete from documents.documents")
    site.fake.expired_cursors = True
    _, again = await site.bring("/P")
    assert (again.imported_count, again.skipped_count, site.documents()) == (0, 2, [])
    site.fake.put("/P/c.md", b"delta")
    await site.bring("/P")
    await site.bring("/P", "a.pdf")
    assert site.documents() == [("a.pdf", 1), ("c.md", 1)]


@pytest.mark.parametrize("provider", ["dropbox"])
async def test_an_import_needs_write_access_to_the_connectors_folder(site: Site) -> None:
    fill(site)
    node = site.sql.execute(
        "insert into documents.nodes (org_id, name, created_by) values (%s, 'Boss', 'x') returning node_id",
        [site.org],
    ).fetchone()
    assert node
    admin = DocumentPrincipal(site.org, SYSTEM)
    other = await Connectors(site.app).create(
        admin, site.connector.provider, "Boss", "file:account", node_id=node[0]
    )
    kind, boss = (
        site.app.registry.get(f"import_{other.provider}"),
        DocumentPrincipal(site.org, Actor.user("boss")),
    )
    handle = await kind.options(actor=Actor.user("u1")).enqueue(connector_id=other.connector_id)
    site.sql.execute(
        "insert into documents.node_grants (org_id, node_id, principal, level, granted_by)"
        " values (%s, %s, 'user:boss', 'write', 'x')",
        [site.org, node[0]],
    )
    job = await run_until_ended(site.app, handle)
    assert (job.outcome, job.error_code) == ("blocked", "connector.unknown")
    await run_until_ended(site.app, await Connectors(site.app).begin_import(boss, other.connector_id))
    assert len(site.documents()) == 4
    await Connectors(site.app).disable(admin, other.connector_id)
    job = await run_until_ended(
        site.app, await kind.options(actor=boss.actor, idempotency_key="2").enqueue(other.connector_id)
    )
    assert (job.outcome, job.error_code) == ("blocked", "connector.disabled")


async def test_secrets_appear_in_no_row_payload_or_log(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fill(site)
    site.fake.tokens = {"access-9"}
    site.fake.damage = {"/Post/a.pdf": ["cut"] * 3}
    await site.bring("/Post")
    site.fake.tokens, site.fake.revoked = set(), True
    await run_until_ended(site.app, await site.ask("/Post"))
    tables = site.sql.execute(
        "select format('%I.%I', schemaname, tablename) from pg_tables"
        " where schemaname in ('duly', 'documents')"
    ).fetchall()
    kept = [str(site.sql.execute(f"select * from {table}").fetchall()) for (table,) in tables]
    read = "\n".join([*kept, caplog.text])
    assert all(word in read for word in ("file:account", "connector.unauthorized"))
    assert not [word for word in ("access-0", "access-1", "refresh-0", "hush", "tempauth") if word in read]
