"""Quotas limit documents, versions and bytes of an org, also for concurrent uploads."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import psycopg
import pytest

from duly import Duly
from duly.apps.documents.errors import QuotaExceeded
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.quotas import Quotas
from duly.apps.documents.uploads.service import PART_SIZE
from tests.apps.documents.stage import add, pieces
from tests.worker.working import settle_attempts

Sql = psycopg.Connection[Any]


@pytest.fixture
def narrow(app: Duly) -> Duly:
    app.include_documents(quotas=Quotas(documents_max=3, versions_max=2, bytes_max=100))
    return app


def usage(sql: Sql) -> tuple[int, int]:
    """As it is counted; it must be as it is."""
    counted = sql.execute("select documents, bytes from documents.usage").fetchone()
    asked = "select count(distinct document_id), coalesce(sum(size), 0) from documents.document_versions"
    assert counted == sql.execute(asked).fetchone()
    assert counted is not None
    return counted[0], counted[1]


async def test_an_org_stores_up_to_its_quota_and_deletions_free_it(
    narrow: Duly, anna: DocumentPrincipal, sql: Sql, tmp_path: Path
) -> None:
    first = await add(narrow, anna, "a" * 40)
    await add(narrow, anna, "b" * 40, document_id=first.document_id)
    with pytest.raises(QuotaExceeded, match="2 versions") as many:
        await add(narrow, anna, "c", document_id=first.document_id)
    with pytest.raises(QuotaExceeded, match="100 bytes") as large:
        await add(narrow, anna, "d" * 30)
    assert (many.value.field, large.value.field) == ("versions", "bytes")
    assert all(error.value.fix and error.value.code == "document.quota" for error in (many, large))
    assert (await add(narrow, anna, "b" * 40)).created is False  # it is there already
    assert usage(sql) == (1, 80)
    await narrow.documents.remove(anna, first.document_id)
    assert usage(sql) == (0, 0)
    for text in "efg":
        await add(narrow, anna, text)
    with pytest.raises(QuotaExceeded, match="3 documents"):
        await add(narrow, anna, "h")
    await settle_attempts(narrow, 2)
    files = [path for path in (tmp_path / "blobs" / "tenant").rglob("*") if path.is_file()]
    assert sorted(path.stat().st_size for path in files) == [1, 1, 1], "what was refused is not kept"


async def test_concurrent_uploads_cannot_exceed_a_quota_together(
    narrow: Duly, anna: DocumentPrincipal, sql: Sql
) -> None:
    told = await asyncio.gather(*(add(narrow, anna, str(n)) for n in range(8)), return_exceptions=True)
    assert sum(isinstance(one, QuotaExceeded) for one in told) == 5
    assert usage(sql) == (3, 3)


async def test_open_uploads_count_towards_the_quota(narrow: Duly, anna: DocumentPrincipal) -> None:
    uploads, data = narrow.documents.uploads, b"x" * 60
    sha256 = hashlib.sha256(data).hexdigest()
    begun = await uploads.begin(anna, sha256, 60)
    assert (await uploads.begin(anna, sha256, 60)).upload_id == begun.upload_id  # it counts once
    with pytest.raises(QuotaExceeded):
        await uploads.begin(anna, "a" * 64, 60)
    with pytest.raises(QuotaExceeded):
        await add(narrow, anna, "y" * 60)
    assert begun.upload_id is not None
    await uploads.put(anna, begun.upload_id, 1, pieces(data))
    assert (await uploads.finish(anna, begun.upload_id, "x.txt", engine=None)).created


async def test_a_file_announced_with_another_size_starts_over(library: Duly, anna: DocumentPrincipal) -> None:
    uploads, data = library.documents.uploads, b"x" * 10
    sha256 = hashlib.sha256(data).hexdigest()
    wrong = await uploads.begin(anna, sha256, 20)
    assert wrong.upload_id is not None
    await uploads.put(anna, wrong.upload_id, 1, pieces(b"y" * 20))
    again = await uploads.begin(anna, sha256, 10)
    assert (again.upload_id, again.received, again.part_size) == (wrong.upload_id, [], PART_SIZE)
    await uploads.put(anna, wrong.upload_id, 1, pieces(data))
    filed = await uploads.finish(anna, wrong.upload_id, "x.txt", engine=None)
    assert (await library.documents.get(anna, filed.document_id)).size == 10
