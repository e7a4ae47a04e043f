"""Documents are stored once, get versions, are listed, changed and downloaded."""

from __future__ import annotations

import hashlib
import uuid

import psycopg
import pytest

from duly import Duly, errors
from duly.apps.documents.errors import UnknownDocument, UnknownFile, UnknownFolder
from duly.apps.documents.folders.access import DocumentPrincipal
from duly.apps.documents.library.filing import checked_name
from tests.apps.documents.stage import add, pieces, visitor


async def test_a_file_becomes_a_document_and_comes_back_as_it_was(
    library: Duly, anna: DocumentPrincipal
) -> None:
    data = b"%PDF-1.7 " + bytes(range(256)) * 1000
    filed = await add(library, anna, data, "Vertrag.pdf", metadata={"year": 2026})
    found = await library.documents.get(anna, filed.document_id)
    assert (found.name, found.media_type, found.size) == ("Vertrag.pdf", "application/pdf", len(data))
    assert (found.sha256, found.status, found.version) == (hashlib.sha256(data).hexdigest(), "stored", 1)
    assert (found.metadata, found.created_by) == ({"year": 2026}, "user:anna")
    version, stream = await library.documents.content(anna, filed.document_id)
    assert b"".join([piece async for piece in stream]) == data
    assert version.file_name == "Vertrag.pdf"


async def test_the_same_content_is_one_document_of_an_org_and_another_of_the_next(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    first = await add(library, anna, "the same", "a.txt")
    again = await add(library, visitor(anna.org_id, "ben"), "the same", "b.txt")
    assert again == (first.document_id, 1, False, False)
    other = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [other])
    elsewhere = await add(library, visitor(other), "the same", "a.txt")
    assert elsewhere.created
    with pytest.raises(UnknownDocument):
        await library.documents.get(anna, elsewhere.document_id)


async def test_a_document_gets_versions_and_keeps_the_old_ones(
    library: Duly, anna: DocumentPrincipal
) -> None:
    first = await add(library, anna, "one")
    second = await add(library, anna, "two", "brief-2.txt", document_id=first.document_id)
    assert second == (first.document_id, 2, False, True)
    same = await add(library, anna, "two", document_id=first.document_id)
    assert same == (first.document_id, 2, False, False)
    assert [one.version for one in await library.documents.versions(anna, first.document_id)] == [2, 1]
    _, stream = await library.documents.content(anna, first.document_id, 1)
    assert [piece async for piece in stream] == [b"one"]
    with pytest.raises(UnknownFile):
        await library.documents.content(anna, first.document_id, 3)


async def test_documents_are_listed_in_pages_the_newest_first(library: Duly, anna: DocumentPrincipal) -> None:
    made = [(await add(library, anna, f"text {n}")).document_id for n in range(5)]
    page = await library.documents.list(anna, limit=3)
    rest = await library.documents.list(anna, limit=3, after=page.after)
    assert [one.document_id for one in [*page.documents, *rest.documents]] == made[::-1]
    assert rest.after is None


async def test_a_document_is_renamed_moved_and_described(library: Duly, anna: DocumentPrincipal) -> None:
    filed = await add(library, anna, "text", metadata={"a": 1})
    folder = await library.documents.folders.create(anna, "Verträge")
    changed = await library.documents.change(
        anna, filed.document_id, name="neu.txt", moves=True, move_to=folder.node_id, metadata={"b": 2}
    )
    assert (changed.name, changed.node_id, changed.metadata) == ("neu.txt", folder.node_id, {"b": 2})
    assert [one.document_id for one in (await library.documents.list(anna, in_root=True)).documents] == []
    back = await library.documents.change(anna, filed.document_id, moves=True)
    assert (back.node_id, back.name) == (None, "neu.txt")


async def test_an_invalid_file_is_refused_and_leaves_nothing(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    for data, how, field in [
        (b"", {}, "file"),
        (b"x", {"node_id": uuid.uuid4()}, "node_id"),
        (b"x", {"name": "../.."}, "name"),
        (b"x", {"metadata": {"password": "hunter2"}}, "metadata.password"),
        (b"x", {"metadata": {"text": "x" * 20_000}}, "metadata"),
        (b"x", {"engine": "unstructured_fast"}, "engine"),
        (b"x", {"document_id": uuid.uuid4()}, "document_id"),
    ]:
        with pytest.raises(errors.DulyError) as refused:
            await add(library, anna, data, **how)  # type: ignore[arg-type]
        assert refused.value.field == field
    assert sql.execute("select count(*) from documents.documents").fetchone() == (0,)


async def test_a_stream_that_breaks_leaves_no_document(library: Duly, anna: DocumentPrincipal) -> None:
    async def broken():  # type: ignore[no-untyped-def]
        yield b"half of it"
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await library.documents.add(anna, "a.txt", broken(), engine=None)
    assert (await library.documents.list(anna)).documents == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\anna\\Rechnung.pdf", "Rechnung.pdf"),
        ("a\u202egnp.exe", "a_gnp.exe"),
        ("x" * 300 + ".pdf", "x" * 251 + ".pdf"),
    ],
)
def test_a_name_keeps_only_the_last_part_of_a_path(given: str, kept: str) -> None:
    assert checked_name(given) == kept


async def test_a_folder_of_another_org_is_reported_as_unknown(
    library: Duly, anna: DocumentPrincipal, sql: psycopg.Connection
) -> None:
    other = uuid.uuid4()
    sql.execute("insert into duly.organizations (org_id, name) values (%s, 'Other')", [other])
    theirs = await library.documents.folders.create(visitor(other), "Theirs")
    said = []
    for node_id in (theirs.node_id, uuid.uuid4()):
        with pytest.raises(UnknownFolder) as refused:
            await library.documents.add(anna, "a.txt", pieces(b"x"), node_id=node_id)
        said.append(str(refused.value))
    assert said[0] == said[1]


async def test_two_uploads_of_the_same_content_at_once_are_one_document(
    library: Duly, anna: DocumentPrincipal
) -> None:
    import asyncio

    filed = await asyncio.gather(*(add(library, anna, "at once") for _ in range(5)))
    assert len({one.document_id for one in filed}) == 1
    assert sum(one.created for one in filed) == 1
