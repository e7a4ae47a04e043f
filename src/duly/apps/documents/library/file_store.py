"""The files of documents in the blob store: originals by their hash, uploaded parts, extracted elements."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from duly.blobs import BlobCorrupted, BlobStore, TenantFile

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class FileStore:
    """The files of one org, below `tenant/<org>/`; only documents refer to them and remove them."""

    def __init__(self, blobs: BlobStore, org_id: UUID) -> None:
        self._blobs = blobs
        self.org_id = org_id

    async def save_original(self, chunks: AsyncIterator[bytes]) -> TenantFile:
        """Save a file under its hash; equal content is stored once."""
        return await self._blobs.write_file(self.org_id, chunks, original_path)

    async def has_original(self, sha256: str, size: int) -> bool:
        """Return whether this content is stored."""
        return await self._blobs.file_size(self.org_id, original_path(sha256)) == size

    async def read_original(self, sha256: str) -> AsyncIterator[bytes]:
        """Yield a file in chunks; the last chunk comes only if the whole file matches the hash."""
        path = original_path(sha256)
        digest, previous = hashlib.sha256(), b""
        async for chunk in self._blobs.read_file(self.org_id, path):
            if previous:
                yield previous
            previous = chunk
            digest.update(chunk)
        if digest.hexdigest() != sha256:
            raise BlobCorrupted(path)
        yield previous

    async def remove_original(self, sha256: str) -> None:
        """Remove a content."""
        await self._blobs.delete_files(self.org_id, original_path(sha256))

    async def save_part(self, upload_id: UUID, part: int, chunks: AsyncIterator[bytes]) -> TenantFile:
        """Save a part of an upload."""
        return await self._blobs.write_file(self.org_id, chunks, _part_path(upload_id, part))

    async def read_parts(self, upload_id: UUID, parts: int) -> AsyncIterator[bytes]:
        """Yield the parts of an upload in order."""
        for part in range(1, parts + 1):
            async for chunk in self._blobs.read_file(self.org_id, _part_path(upload_id, part)):
                yield chunk

    async def save_derived(self, document_id: UUID, name: str, data: bytes) -> TenantFile:
        """Save a file that was derived from a document; it replaces the one of the same name."""

        async def chunks() -> AsyncIterator[bytes]:
            yield data

        return await self._blobs.write_file(self.org_id, chunks(), f"{derived_folder(document_id)}/{name}")

    async def read_derived(self, document_id: UUID, name: str) -> bytes:
        """Return a file that was derived from a document."""
        chunks = self._blobs.read_file(self.org_id, f"{derived_folder(document_id)}/{name}")
        return b"".join([chunk async for chunk in chunks])

    async def remove_derived(self, document_id: UUID, names: Iterable[str]) -> None:
        """Remove files that were derived from a document."""
        folder = derived_folder(document_id)
        await self._blobs.delete_files(self.org_id, *[f"{folder}/{name}" for name in names])

    async def list_extractions(self, document_id: UUID) -> Sequence[UUID]:
        """Return the extractions of a document that have saved elements."""
        paths = await self._blobs.list_files(self.org_id, derived_folder(document_id))
        stems = [path.rpartition("/")[2].removesuffix(".json") for path in paths]
        return [UUID(stem) for stem in stems if _UUID.fullmatch(stem)]

    async def sweep(self, before: datetime) -> int:
        """Remove half-written files older than `before`, left by processes that died; return how many."""
        return await self._blobs.sweep(self.org_id, before)

    async def remove_folder(self, folder: str) -> None:
        """Remove all files of a folder."""
        await self._blobs.delete_files(self.org_id, *await self._blobs.list_files(self.org_id, folder))


def elements_file_name(extraction_id: UUID) -> str:
    """Return the name of the file with the elements that an extraction found."""
    return f"{extraction_id}.json"


def original_path(sha256: str) -> str:
    """Return the path of a file by its hash."""
    return f"original/{sha256[:2]}/{sha256}"


def derived_folder(document_id: UUID) -> str:
    """Return the folder of the files that were derived from a document."""
    return f"derived/{document_id}"


def upload_folder(upload_id: UUID) -> str:
    """Return the folder of the parts of an upload."""
    return f"upload/{upload_id}"


def _part_path(upload_id: UUID, part: int) -> str:
    return f"{upload_folder(upload_id)}/{part}"
