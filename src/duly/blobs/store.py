"""The blob store: blobs are written once under their hash, and verified on every read."""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit
from urllib.request import url2pathname
from uuid import UUID, uuid4

import obstore
from obstore.exceptions import AlreadyExistsError, NotSupportedError
from obstore.store import LocalStore, from_url

from duly.blobs.ref import BlobCorrupted, BlobNotFound, BlobRef

if TYPE_CHECKING:
    from obstore import GetResult

_CHUNK = 1024 * 1024


class TenantFile(NamedTuple):
    """A named file of a tenant."""

    name: str
    sha256: str
    size: int


class BlobStore:
    """Blobs in a local directory (a path or file:// URL), or in an s3://, gs://, az:// or memory:// store.

    A put that returned is durable. Cloud stores promise that themselves; obstore's LocalStore never
    calls fsync and has no option for it, so on a local disk the bytes are synced here before their
    content key appears, and the directories that lead to it after. The parents of the root
    directory are not synced, and neither are deletions.

    An upload that dies with its process leaves an object under `org/<org_id>/tmp/` or `tenant/<org_id>/tmp/`,
    which `sweep` removes, or an unfinished multipart upload, which a cloud bucket should be set to expire.
    """

    def __init__(self, url_or_path: str | Path) -> None:
        self._root = _local_root(url_or_path)
        if self._root is None:
            self._objects = from_url(str(url_or_path))
        else:
            self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._objects = LocalStore(self._root)

    async def put(self, org_id: UUID, data: bytes) -> BlobRef:
        """Store `data` and return its reference; equal content is stored once.

        An existing object of the wrong size is replaced. One of the right size is trusted, not read.
        """
        if self._root is not None:
            return await self.put_stream(org_id, _once(data))
        ref = BlobRef(org_id, await asyncio.to_thread(_sha256, data), len(data))
        try:
            await self._objects.put_async(ref.key, data, mode="create")
        except AlreadyExistsError:
            if not await self.exists(ref, org_id=org_id):
                await self._objects.put_async(ref.key, data)
        return ref

    async def put_stream(self, org_id: UUID, chunks: AsyncIterator[bytes]) -> BlobRef:
        """Store the concatenated `chunks` like `put`, without holding them all in memory.

        If `chunks` raises or the call is cancelled, nothing is stored. S3 copies at most 5 GB at once,
        which bounds a streamed blob there.
        """
        digest = hashlib.sha256()
        temporary = f"org/{org_id}/tmp/{uuid4()}"  # noqa: S108 - a key in the store, not a shared path
        try:
            size = await self._write(temporary, chunks, digest)
            ref = BlobRef(org_id, digest.hexdigest(), size)
            await self._publish(temporary, ref)
        finally:
            await self._discard(temporary)
        return ref

    async def get(self, ref: BlobRef, *, org_id: UUID) -> bytes:
        """Return the whole blob; raise BlobNotFound or BlobCorrupted rather than return other bytes."""
        found = await self._open(ref, org_id)
        data = (await found.bytes_async()).to_bytes()
        if await asyncio.to_thread(_sha256, data) != ref.sha256:
            raise BlobCorrupted(ref)
        return data

    async def stream(self, ref: BlobRef, *, org_id: UUID) -> AsyncIterator[bytes]:
        """Yield the blob in chunks, the last one only after all of them are verified.

        A reader that must not use corrupted bytes therefore waits for the end of the iteration.
        """
        found = await self._open(ref, org_id)
        digest, held = hashlib.sha256(), b""
        async for chunk in found.stream(_CHUNK):
            if held:
                yield held
            held = bytes(chunk)
            await asyncio.to_thread(digest.update, held)
        if digest.hexdigest() != ref.sha256:
            raise BlobCorrupted(ref)
        if held:
            yield held

    async def exists(self, ref: BlobRef, *, org_id: UUID) -> bool:
        """Return whether this org has the blob at its full size; the content is not read."""
        if org_id == ref.org_id:
            with suppress(FileNotFoundError):
                return (await self._objects.head_async(ref.key))["size"] == ref.size
        return False

    async def delete(self, ref: BlobRef, *, org_id: UUID) -> None:
        """Delete the blob; deleting an unknown one, or that of another org, changes nothing."""
        if org_id == ref.org_id:
            await self._discard(ref.key)

    async def write_file(
        self, org_id: UUID, chunks: AsyncIterator[bytes], name: str | Callable[[str], str]
    ) -> TenantFile:
        """Write the concatenated `chunks` as a file of a tenant, replacing one of the same name.

        The application names and deletes such files. A name may depend on the hash of the content.
        """
        digest = hashlib.sha256()
        temporary = f"tenant/{org_id}/tmp/{uuid4()}"  # noqa: S108 - a key in the store, not a shared path
        try:
            size = await self._write(temporary, chunks, digest)
            final = name if isinstance(name, str) else name(digest.hexdigest())
            key = _tenant_key(org_id, final)
            await self._sync(temporary)
            await self._objects.copy_async(temporary, key)
            await self._sync(*Path(key).parents)
        finally:
            await self._discard(temporary)
        return TenantFile(final, digest.hexdigest(), size)

    async def read_file(self, org_id: UUID, name: str) -> AsyncIterator[bytes]:
        """Yield a tenant's file in chunks; raise BlobNotFound if there is none of this name."""
        try:
            found = await self._objects.get_async(_tenant_key(org_id, name))
        except FileNotFoundError:
            raise BlobNotFound(name) from None
        async for chunk in found.stream(_CHUNK):
            yield bytes(chunk)

    async def file_size(self, org_id: UUID, name: str) -> int | None:
        """Return the size of a tenant's file, or None if there is none of this name."""
        with suppress(FileNotFoundError):
            return int((await self._objects.head_async(_tenant_key(org_id, name)))["size"])
        return None

    async def list_files(self, org_id: UUID, folder: str) -> list[str]:
        """Return the names of a tenant's files in a folder and below, sorted."""
        start = f"tenant/{org_id}/"
        pages = self._objects.list(prefix=_tenant_key(org_id, folder))
        return sorted([meta["path"].removeprefix(start) async for page in pages for meta in page])

    async def delete_files(self, org_id: UUID, *names: str) -> None:
        """Delete a tenant's files; missing ones are ignored."""
        for name in names:
            await self._discard(_tenant_key(org_id, name))

    async def sweep(self, org_id: UUID, before: datetime) -> int:
        """Delete what interrupted uploads of an org left before that time; return the number of objects."""
        old = [
            meta["path"]
            for kind in ("org", "tenant")
            async for page in self._objects.list(prefix=f"{kind}/{org_id}/tmp")  # noqa: S108 - a key
            for meta in page
            if meta["last_modified"] < before
        ]
        for key in old:
            await self._discard(key)
        return len(old)

    async def _open(self, ref: BlobRef, org_id: UUID) -> "GetResult":
        # One raise for both cases: the blob of another org must look exactly like no blob.
        if org_id == ref.org_id:
            with suppress(FileNotFoundError):
                found = await self._objects.get_async(ref.key)
                if found.meta["size"] != ref.size:
                    raise BlobCorrupted(ref)
                return found
        raise BlobNotFound(ref)

    async def _write(self, key: str, chunks: AsyncIterator[bytes], digest: "hashlib._Hash") -> int:
        size = 0
        async with obstore.open_writer_async(self._objects, key, max_concurrency=4) as writer:
            async for chunk in chunks:
                await asyncio.to_thread(digest.update, chunk)
                size += len(chunk)
                await writer.write(chunk)
        return size

    async def _publish(self, temporary: str, ref: BlobRef) -> None:
        # Synced before it is linked: a retry after a power cut trusts whatever has the right size.
        await self._sync(temporary)
        try:
            await self._objects.copy_async(temporary, ref.key, overwrite=False)
        except (AlreadyExistsError, NotSupportedError):
            # S3 has no create-only copy. Overwriting is harmless: the key determines the bytes.
            if not await self.exists(ref, org_id=ref.org_id):
                await self._objects.copy_async(temporary, ref.key)
        await self._sync(*Path(ref.key).parents)

    async def _discard(self, key: str) -> None:
        with suppress(FileNotFoundError):
            await self._objects.delete_async(key)

    async def _sync(self, *keys: str | Path) -> None:
        if self._root is not None:
            await asyncio.to_thread(_fsync, [self._root / key for key in keys])


def _tenant_key(org_id: UUID, name: str) -> str:
    """Return the key of a tenant's file, always below its org."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{name!r} is not a valid file name: it must stay below its folder")
    return f"tenant/{UUID(str(org_id))}/{name}"


def _local_root(url_or_path: str | Path) -> Path | None:
    if isinstance(url_or_path, Path) or "://" not in url_or_path:
        return Path(url_or_path).resolve()
    url = urlsplit(url_or_path)
    if url.scheme != "file":
        return None
    if url.netloc not in ("", "localhost"):
        raise ValueError(f"{url_or_path!r} names a host; write file:///absolute/path with three slashes")
    return Path(url2pathname(url.path)).resolve()


def _fsync(paths: Iterable[Path]) -> None:
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
