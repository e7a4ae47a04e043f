"""Behaviour of single providers, and limits that all of them share."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import psycopg
import pytest

from duly import Duly
from duly.apps.documents.imports.options import ProviderEndpoint
from duly.apps.documents.schema import statement
from duly.core.errors import ConfigurationError
from duly.testing import FreshDatabase
from tests.apps.documents.imports.importing import GRANT, Site, site_of
from tests.worker.working import run_until_ended, settle_attempts, until, working

_TAKEN = """
    with made as (
        insert into documents.documents (org_id, name, sha256, size, media_type, created_by)
        values (%(org_id)s, 'theirs', repeat('0', 64), 1, 'text/plain', 'x') returning document_id
    )
    insert into documents.connector_files
        (org_id, connector_id, remote_id, revision, remote_path, document_id, version, job_id)
    select %(org_id)s, %(connector_id)s, %(remote_id)s, '2026-01-02T03:04:01.000Z', '/Brief',
        document_id, 1, gen_random_uuid() from made
"""


@pytest.fixture
def provider(request: pytest.FixtureRequest) -> str:
    """The one that the test is named after."""
    return next(name for name in ("dropbox", "onedrive", "gdrive") if name in request.node.name)


@pytest.fixture
async def site(
    provider: str, app: Duly, sql: psycopg.Connection, acting: uuid.UUID, tmp_path: Path
) -> AsyncIterator[Site]:
    limits = {"max_batch_files": 2, "max_file_size": 1000}
    async with site_of(provider, app, sql, acting, tmp_path / "secrets", **limits) as made:  # type: ignore[arg-type]
        yield made


async def test_onedrive_downloads_are_redirected_without_the_token(site: Site) -> None:
    site.fake.put("/a b/ü.txt", b"alpha")
    _, said = await site.bring("/a b")
    assert said.imported_count == 1
    sent_on = [call for call in site.fake.calls if call.path.startswith("/preauthenticated")]
    assert [(call.headers["host"], call.headers.get("authorization")) for call in sent_on] == [
        (f"localhost:{site.fake.port}", None)
    ]


async def test_onedrive_download_links_that_expired_are_requested_again(site: Site) -> None:
    site.fake.put("/a.txt", b"alpha")
    site.fake.expired_keys = 2
    _, said = await site.bring()
    assert (said.imported_count, site.fake.renewals) == (1, 0)


async def test_onedrive_redirects_to_unknown_hosts_are_refused(site: Site) -> None:
    site.fake.put("/a.txt", b"alpha")
    site.fake.download_host = "127.0.0.1"
    _, said = await site.bring()
    assert (said.imported_count, said.failures[0].error_code) == (0, "provider.redirect")
    # A link for the next page takes the token along: it must not lead elsewhere.
    async with type(site.fake)() as elsewhere:
        site.fake.put("/b.txt", b"beta")
        site.fake.page, site.fake.next_host = 1, elsewhere.url
        handle = await site.ask("/b.txt")
        await settle_attempts(site.app)
        assert elsewhere.calls == []
        assert (await handle.status()).error_code == "provider.unreachable"


async def test_gdrive_exports_its_own_documents_and_follows_shortcuts(site: Site) -> None:
    site.fake.put("/P/Brief", b"PK\x03\x04 words", "document")
    site.fake.put("/P/Zahlen", b"PK\x03\x04 cells", "spreadsheet")
    site.fake.put("/P/Umfrage", b"", "form")
    target = site.fake.put("/Q/t.txt", b"target")
    site.fake.put("/P/hin.txt", kind="shortcut", target=target.remote_id)
    site.fake.put("/P/tot.txt", kind="shortcut", target="nowhere")
    site.fake.put("/P/O'Neill \\ Co.txt", b"quoted")
    _, said = await site.bring("/P")
    assert (said.imported_count, said.skipped_count) == (4, 2), "neither the form nor what leads nowhere"
    _, said = await site.bring("/P", "Brief", "hin.txt", "O'Neill \\ Co.txt")
    assert (said.imported_count, said.skipped_count) == (0, 3)
    _, said = await site.bring("/P")
    assert (said.imported_count, said.skipped_count) == (0, 0)
    kinds = dict(site.sql.execute("select name, media_type from documents.documents").fetchall())
    assert kinds["Brief.docx"].endswith("wordprocessingml.document")
    assert kinds["Zahlen.xlsx"].endswith("spreadsheetml.sheet")
    assert await site.content("hin.txt") == b"target"


async def test_gdrive_documents_of_a_concurrent_import_are_not_imported_twice(
    site: Site, fresh: FreshDatabase
) -> None:
    # What is exported is never the same twice: by its content nobody would know it again.
    file = site.fake.put("/Brief", b"PK words", "document")
    ids = {"org_id": site.org, "connector_id": site.connector.connector_id, "remote_id": file.remote_id}
    handle = await site.ask()
    with psycopg.connect(fresh.direct_url) as other:
        other.execute(statement("connectors/lock_file"), ids)
        async with working(site.app):
            await until(
                site.sql, "select exists (select from pg_locks where locktype = 'advisory' and not granted)"
            )
            other.execute(_TAKEN, ids)
            other.commit()
            await handle.wait(60)
    assert (await handle.result()).skipped_count == 1
    assert site.documents() == [("theirs", 1)]


async def test_gdrive_imports_a_folder_that_was_moved_in_and_marks_one_moved_out(site: Site) -> None:
    site.fake.put("/In/a.txt", b"alpha")
    site.fake.put("/Out/Sub/b.txt", b"beta")
    await site.bring("/In")
    sub, file = site.fake.at("/Out/Sub"), site.fake.at("/Out/Sub/b.txt")
    sub.path, file.path = "/In/Sub", "/In/Sub/b.txt"
    site.fake.journal.append(sub.remote_id)
    _, said = await site.bring("/In")
    assert (said.imported_count, site.documents()) == (1, [("a.txt", 1), ("b.txt", 1)])
    where = site.sql.execute("select remote_path from documents.connector_files order by remote_path")
    assert where.fetchall() == [("/Sub/b.txt",), ("/a.txt",)]
    file.path = "/Out/b.txt"
    site.fake.journal.append(file.remote_id)
    _, said = await site.bring("/In")
    assert said.removed_count == 1


async def test_dropbox_cursor_moves_only_past_imported_files(site: Site) -> None:
    site.fake.page = 2
    for number in range(5):
        site.fake.put(f"/f{number}.txt", b"%d" % number)
    site.fake.damage = {"/f4.txt": ["flipped"] * 3}
    _, said = await site.bring()
    assert (said.imported_count, said.failed_count) == (4, 1)
    site.fake.calls.clear()
    _, said = await site.bring()
    listed = [call.path for call in site.fake.calls if "list_folder" in call.path]
    assert (said.imported_count, said.skipped_count, listed) == (1, 0, ["/2/files/list_folder/continue"])


async def test_dropbox_tokens_are_refreshed_per_attempt_if_they_cannot_be_saved(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    variables = {f"DULY_SECRET_{site.org.hex.upper()}_DROPBOX": json.dumps({**GRANT, "access_token": "old"})}
    monkeypatch.setattr(site.secrets, "_environment", variables)
    site.sql.execute("update documents.connectors set secret_ref = 'env:DROPBOX'")

    async def run_out(path: str) -> None:
        site.fake.tokens = set()

    site.fake.on_download = run_out
    for name in ("a", "b", "c"):
        site.fake.put(f"/{name}.txt", name.encode())
    _, said = await site.bring()
    assert (said.imported_count, site.fake.renewals) == (3, 3)


async def test_dropbox_deletes_a_folder_with_all_that_was_in_it(site: Site) -> None:
    site.fake.put("/D/a.txt", b"alpha")
    site.fake.put("/D/Sub/b.txt", b"beta")
    site.fake.put("/Dx/c.txt", b"gamma")
    await site.bring()
    site.fake.remove("/D")
    _, said = await site.bring()
    assert (said.removed_count, len(site.documents())) == (2, 3)
    # It is put back as it was.
    folder = next(one for one in site.fake.stored.values() if one.path == "/D")
    folder.removed = False
    site.fake.journal += [site.fake.at("/D/a.txt").remote_id]
    _, said = await site.bring()
    gone = site.sql.execute("select count(*) from documents.connector_files where removed_at is not null")
    assert (gone.fetchone(), said.imported_count, len(site.fake.downloads)) == ((1,), 0, 3)


async def test_dropbox_files_that_are_too_large_are_not_downloaded(site: Site) -> None:
    site.fake.put("/large.bin", bytes(1001))
    _, said = await site.bring()
    assert (said.failures[0].error_code, said.failed_count) == ("import.too_large", 1)
    assert site.fake.downloads == []


async def test_gdrive_exports_that_turn_out_too_large_are_refused(site: Site) -> None:
    site.fake.put("/Groß", bytes(1001), "document")
    _, said = await site.bring()
    assert [one.error_code for one in said.failures] == ["import.too_large"]
    assert await (await site.app.resources()).blobs.list_files(site.org, "original") == []


async def test_an_unknown_dropbox_folder_fails_at_once(site: Site) -> None:
    job = await run_until_ended(site.app, await site.ask("/Nowhere"))
    assert (job.status, job.error_code, job.attempt) == ("failed", "import.not_found", 1)


async def test_files_from_dropbox_are_extracted_after_their_import(site: Site) -> None:
    site.app.include_documents()
    site.fake.put("/a.txt", b"alpha")
    _, said = await site.bring()
    site.fake.put("/a.txt", b"beta")
    await site.bring()
    found = site.sql.execute(
        "select e.document_id, e.version, j.job_type, j.actor_id from documents.extractions e"
        " join duly.jobs j on j.org_id = e.org_id and j.job_id = e.job_id order by e.version"
    ).fetchall()
    document_id = said.document_ids[0]
    assert found == [(document_id, version, "extract_document", "u1") for version in (1, 2)]


def test_endpoints_without_encryption_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="without encryption"):
        ProviderEndpoint("http://api.example.com", "https://api.example.com/token")
    assert "hush" not in repr(
        ProviderEndpoint("https://a.example", "https://a.example", client_secret="hush")
    )
