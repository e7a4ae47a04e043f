"""The blob store, on a local disk and in memory."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from duly.blobs import BlobCorrupted, BlobNotFound, BlobRef, BlobStore

ORG, OTHER = uuid4(), uuid4()
MEGABYTE = 1024 * 1024


@pytest.fixture(params=["local", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "blobs" if request.param == "local" else "memory:///")


async def chunked(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def read_stream(store: BlobStore, ref: BlobRef, org_id: UUID = ORG) -> list[bytes]:
    return [chunk async for chunk in store.stream(ref, org_id=org_id)]


async def keys(store: BlobStore) -> list[str]:
    return [str(item["path"]) for item in await store._objects.list().collect_async()]


async def tamper(store: BlobStore, ref: BlobRef, data: bytes) -> None:
    await store._objects.put_async(ref.key, data)


@pytest.mark.parametrize("data", [b"", b"x", b"hello" * 1000, bytes(3 * MEGABYTE + 1)])
async def test_get_returns_the_put_content(store: BlobStore, data: bytes) -> None:
    ref = await store.put(ORG, data)
    assert ref == BlobRef(ORG, hashlib.sha256(data).hexdigest(), len(data))
    assert await store.exists(ref, org_id=ORG)
    assert await store.get(ref, org_id=ORG) == data
    assert b"".join(await read_stream(store, ref)) == data


async def test_put_stream_stores_the_joined_chunks_as_one_blob(store: BlobStore) -> None:
    streamed = await store.put_stream(ORG, chunked(b"one ", b"", b"two"))
    assert streamed == await store.put(ORG, b"one two")
    assert await store.get(streamed, org_id=ORG) == b"one two"
    assert await keys(store) == [streamed.key]


async def test_an_empty_stream_is_stored_as_the_empty_blob(store: BlobStore) -> None:
    assert await store.put_stream(ORG, chunked()) == await store.put(ORG, b"")


async def test_equal_content_is_stored_once_per_organisation(store: BlobStore) -> None:
    first, again, other = [await store.put(org, b"same") for org in (ORG, ORG, OTHER)]
    assert first == again != other
    assert sorted(await keys(store)) == sorted([first.key, other.key])


async def test_concurrent_puts_of_equal_content_agree(store: BlobStore) -> None:
    puts = [store.put(ORG, b"same") for _ in range(10)]
    streams = [store.put_stream(ORG, chunked(b"sa", b"me")) for _ in range(10)]
    refs = set(await asyncio.gather(*puts, *streams))
    assert len(refs) == 1
    assert await keys(store) == [refs.pop().key]


async def test_a_large_blob_streams_in_and_out(store: BlobStore) -> None:
    chunks = [bytes([number]) * MEGABYTE for number in range(20)]
    ref = await store.put_stream(ORG, chunked(*chunks))
    assert b"".join(await read_stream(store, ref)) == b"".join(chunks)


async def test_a_blob_on_disk_is_read_in_bounded_chunks(tmp_path: Path) -> None:
    store = BlobStore(tmp_path)
    pieces = await read_stream(store, await store.put(ORG, bytes(5 * MEGABYTE)))
    assert max(map(len, pieces)) <= 2 * MEGABYTE


async def test_a_blob_of_another_organisation_is_unknown(store: BlobStore) -> None:
    theirs = await store.put(ORG, b"secret")
    unknown = BlobRef(OTHER, hashlib.sha256(b"never put").hexdigest(), 9)
    messages = []
    for ref in (theirs, unknown):
        with pytest.raises(BlobNotFound) as on_get:
            await store.get(ref, org_id=OTHER)
        with pytest.raises(BlobNotFound) as on_stream:
            await read_stream(store, ref, OTHER)
        assert not await store.exists(ref, org_id=OTHER)
        for error in (on_get.value, on_stream.value):
            assert error.__cause__ is None
            assert error.__context__ is None
            messages.append(str(error).replace(str(ref), "<ref>"))
    assert len(set(messages)) == 1


async def test_another_organisation_cannot_delete(store: BlobStore) -> None:
    ref = await store.put(ORG, b"mine")
    await store.delete(ref, org_id=OTHER)
    assert await store.get(ref, org_id=ORG) == b"mine"


async def test_deleting_is_idempotent(store: BlobStore) -> None:
    ref = await store.put(ORG, b"gone")
    await store.delete(ref, org_id=ORG)
    await store.delete(ref, org_id=ORG)
    assert not await store.exists(ref, org_id=ORG)
    with pytest.raises(BlobNotFound, match="was not found"):
        await store.get(ref, org_id=ORG)


@pytest.mark.parametrize("stored", [b"tampered", b"orig", b"", b"original and more"])
async def test_a_changed_blob_is_refused_on_read(store: BlobStore, stored: bytes) -> None:
    ref = await store.put(ORG, b"original")
    await tamper(store, ref, stored)
    with pytest.raises(BlobCorrupted, match=str(ref)):
        await store.get(ref, org_id=ORG)
    with pytest.raises(BlobCorrupted, match=str(ref)):
        await read_stream(store, ref)


async def test_a_ref_that_claims_the_wrong_size_is_refused(store: BlobStore) -> None:
    ref = await store.put(ORG, b"original")
    with pytest.raises(BlobCorrupted):
        await store.get(BlobRef(ORG, ref.sha256, ref.size + 1), org_id=ORG)


async def test_the_last_chunk_of_a_changed_blob_is_withheld(store: BlobStore) -> None:
    data = bytes(3 * MEGABYTE)
    ref = await store.put(ORG, data)
    await tamper(store, ref, data[:-1] + b"!")
    received = bytearray()

    async def read() -> None:
        async for chunk in store.stream(ref, org_id=ORG):
            received.extend(chunk)

    with pytest.raises(BlobCorrupted):
        await read()
    assert len(received) < len(data)
    assert b"!" not in received


@pytest.mark.parametrize("streamed", [False, True])
async def test_putting_the_same_content_repairs_a_truncated_blob(store: BlobStore, streamed: bool) -> None:
    ref = await store.put(ORG, b"original")
    await tamper(store, ref, b"orig")
    assert not await store.exists(ref, org_id=ORG)
    again = store.put_stream(ORG, chunked(b"original")) if streamed else store.put(ORG, b"original")
    assert await again == ref
    assert await store.get(ref, org_id=ORG) == b"original"


@pytest.mark.parametrize("before", [1, 12 * MEGABYTE])
async def test_a_stream_that_fails_in_the_middle_leaves_nothing(
    store: BlobStore, tmp_path: Path, before: int
) -> None:
    async def failing() -> AsyncIterator[bytes]:
        yield bytes(before)
        raise ConnectionError("the sender went away")

    with pytest.raises(ConnectionError, match="went away"):
        await store.put_stream(ORG, failing())
    assert await keys(store) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


async def test_a_cancelled_stream_leaves_nothing(store: BlobStore, tmp_path: Path) -> None:
    stalled = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        yield bytes(12 * MEGABYTE)
        stalled.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(store.put_stream(ORG, stalling()))
    await stalled.wait()
    upload.cancel()
    with pytest.raises(asyncio.CancelledError):
        await upload
    assert await keys(store) == []
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("spelling", ["path", "text", "url"])
async def test_a_local_directory_is_made_private_and_reopens(tmp_path: Path, spelling: str) -> None:
    root = tmp_path / "a b" / "blobs"
    locations: dict[str, str | Path] = {"path": root, "text": str(root), "url": root.as_uri()}
    location = locations[spelling]
    ref = await BlobStore(location).put(ORG, b"content")
    assert root.stat().st_mode & 0o777 == 0o700
    assert (root / ref.key).read_bytes() == b"content"
    assert await BlobStore(location).get(ref, org_id=ORG) == b"content"


def test_a_file_url_with_a_host_is_refused() -> None:
    with pytest.raises(ValueError, match="three slashes"):
        BlobStore("file://relative/dir")


async def read(store: BlobStore, name: str, org_id: UUID = ORG) -> bytes:
    return b"".join([chunk async for chunk in store.read_file(org_id, name)])


async def test_a_tenants_file_is_read_by_name_and_replaced_by_the_next_write(store: BlobStore) -> None:
    stored = await store.write_file(ORG, chunked(b"one ", b"two"), "derived/d1/elements.json")
    assert stored == ("derived/d1/elements.json", hashlib.sha256(b"one two").hexdigest(), 7)
    assert await keys(store) == [f"tenant/{ORG}/derived/d1/elements.json"]
    assert (await read(store, stored.name), await store.file_size(ORG, stored.name)) == (b"one two", 7)
    await store.write_file(ORG, chunked(b"three"), stored.name)
    assert await read(store, stored.name) == b"three"


async def test_the_name_of_a_tenants_file_may_be_its_hash(store: BlobStore) -> None:
    first, again = [
        await store.write_file(ORG, chunked(b"same"), lambda sha: f"original/{sha}") for _ in range(2)
    ]
    assert first == again
    assert first.name == f"original/{hashlib.sha256(b'same').hexdigest()}"
    assert len(await keys(store)) == 1


async def test_the_files_of_a_tenant_are_listed_by_folder_and_deleted(store: BlobStore) -> None:
    for name in ("derived/d1/a", "derived/d1/b/c", "derived/d2/a"):
        await store.write_file(ORG, chunked(b"x"), name)
    await store.write_file(OTHER, chunked(b"x"), "derived/d1/a")
    assert await store.list_files(ORG, "derived/d1") == ["derived/d1/a", "derived/d1/b/c"]
    await store.delete_files(ORG, *await store.list_files(ORG, "derived/d1"), "derived/never")
    assert await store.list_files(ORG, "derived") == ["derived/d2/a"]
    assert await store.file_size(OTHER, "derived/d1/a") == 1


async def test_a_file_of_another_tenant_is_unknown(store: BlobStore) -> None:
    await store.write_file(ORG, chunked(b"x"), "a")
    for org_id, name in ((OTHER, "a"), (ORG, "b")):
        with pytest.raises(BlobNotFound):
            await read(store, name, org_id)
        assert await store.file_size(org_id, name) is None


@pytest.mark.parametrize("name", ["../other/a", "a/../../b", "/a", "a//b", "", ".", "a\0b"])
async def test_a_file_name_cannot_leave_the_folder_of_its_tenant(store: BlobStore, name: str) -> None:
    with pytest.raises(ValueError, match="below its folder"):
        await store.write_file(ORG, chunked(b"x"), name)
    assert await keys(store) == []


async def test_an_interrupted_file_is_not_stored(store: BlobStore) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await store.write_file(ORG, broken(), "a")
    assert await keys(store) == []
