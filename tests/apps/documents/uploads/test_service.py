"""Uploads in parts: resumed after an interruption, verified at the end, private."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from duly import Duly, errors
from duly.apps.documents.errors import UnknownUpload, UploadIncomplete
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.uploads import service as room
from tests.apps.documents.stage import add, pieces, visitor
from tests.worker.working import settle_attempts


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PART_SIZE", 1000)


DATA = bytes(range(256)) * 10
HASH = hashlib.sha256(DATA).hexdigest()


async def test_an_upload_in_parts_resumes_after_an_interruption(
    library: Duly, anna: DocumentPrincipal, tmp_path: Path
) -> None:
    uploads = library.documents.uploads
    begun = await uploads.begin(anna, HASH, len(DATA))
    assert (begun.parts, begun.missing) == (3, [1, 2, 3])
    assert begun.upload_id is not None
    await uploads.put(anna, begun.upload_id, 2, pieces(DATA[1000:2000]))

    again = await uploads.begin(anna, HASH, len(DATA))
    assert (again.upload_id, again.received, again.missing) == (begun.upload_id, [2], [1, 3])
    with pytest.raises(UploadIncomplete, match="2 of 3"):
        await uploads.finish(anna, begun.upload_id, "a.bin", engine=None)
    await uploads.put(anna, begun.upload_id, 1, pieces(DATA[:1000]))
    await uploads.put(anna, begun.upload_id, 3, pieces(DATA[2000:]))
    filed = await uploads.finish(anna, begun.upload_id, "a.bin", engine=None)

    found = await library.documents.get(anna, filed.document_id)
    assert (found.sha256, found.size) == (HASH, len(DATA))
    with pytest.raises(UnknownUpload):
        await uploads.get(anna, begun.upload_id)
    await settle_attempts(library)
    left = {path.name for path in (tmp_path / "blobs" / "tenant").rglob("*") if path.is_file()}
    assert left == {HASH}


async def test_a_visible_content_need_not_be_uploaded_again(library: Duly, anna: DocumentPrincipal) -> None:
    there = await add(library, anna, DATA)
    begun = await library.documents.uploads.begin(anna, HASH, len(DATA))
    assert (begun.upload_id, begun.document_id) == (None, there.document_id)


async def test_a_part_of_the_wrong_size_and_a_file_of_another_hash_are_refused(
    library: Duly, anna: DocumentPrincipal
) -> None:
    uploads = library.documents.uploads
    begun = await uploads.begin(anna, hashlib.sha256(b"other").hexdigest(), 5)
    assert begun.upload_id is not None
    for wrong in (b"four", b"sixsix"):
        with pytest.raises(errors.ContractError):
            await uploads.put(anna, begun.upload_id, 1, pieces(wrong))
    with pytest.raises(errors.ContractError, match="no part 2"):
        await uploads.put(anna, begun.upload_id, 2, pieces(b"x"))
    await uploads.put(anna, begun.upload_id, 1, pieces(b"wrong"))
    with pytest.raises(UploadIncomplete, match="announced"):
        await uploads.finish(anna, begun.upload_id, "a.txt", engine=None)
    assert (await library.documents.list(anna)).documents == []


async def test_an_upload_is_visible_to_its_principal_only(library: Duly, anna: DocumentPrincipal) -> None:
    begun = await library.documents.uploads.begin(anna, HASH, len(DATA))
    assert begun.upload_id is not None
    ben = visitor(anna.org_id, "ben")
    with pytest.raises(UnknownUpload):
        await library.documents.uploads.get(ben, begun.upload_id)
    assert (await library.documents.uploads.begin(ben, HASH, len(DATA))).upload_id != begun.upload_id
    with pytest.raises(errors.ContractError, match="sha256"):
        await library.documents.uploads.begin(anna, HASH.upper(), 5)


async def test_a_part_of_the_wrong_size_leaves_the_good_one_in_place(
    library: Duly, anna: DocumentPrincipal
) -> None:
    uploads = library.documents.uploads
    begun = await uploads.begin(anna, hashlib.sha256(b"right").hexdigest(), 5)
    assert begun.upload_id is not None
    await uploads.put(anna, begun.upload_id, 1, pieces(b"right"))
    for wrong in (b"too long", b"less"):
        with pytest.raises(errors.ContractError) as refused:
            await uploads.put(anna, begun.upload_id, 1, pieces(wrong))
        assert refused.value.field == "body"
    assert (await uploads.finish(anna, begun.upload_id, "a.txt", engine=None)).created


async def test_open_uploads_are_limited_and_expire(library: Duly, anna: DocumentPrincipal) -> None:
    hashes = [hashlib.sha256(str(n).encode()).hexdigest() for n in range(101)]
    for sha256 in hashes[:100]:
        await library.documents.uploads.begin(anna, sha256, 5)
    with pytest.raises(errors.LimitExceeded):
        await library.documents.uploads.begin(anna, hashes[100], 5)
    assert (await library.documents.uploads.begin(anna, hashes[0], 5)).missing == [1]
