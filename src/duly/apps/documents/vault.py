"""Where the files of documents are: originals by their hash, and what was derived from them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from duly.blobs import BlobCorrupted, BlobStore, TenantFile

_UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class Vault:
    """The files of one org, below `tenant/<org>/`: only documents name them, and only they remove them."""

    def __init__(self, blobs: BlobStore, org_id: UUID) -> None:
        self._blobs = blobs
        self.org_id = org_id

    async def keep_original(self, chunks: AsyncIterator[bytes]) -> TenantFile:
        """Keep a file; the same content is kept once."""
        return await self._blobs.write_file(self.org_id, chunks, original_name)

    async def has_original(self, sha256: str, size: int) -> bool:
        """Whether this content is there."""
        return await self._blobs.file_size(self.org_id, original_name(sha256)) == size

    async def original(self, sha256: str) -> AsyncIterator[bytes]:
        """A file in chunks, the last one only when all of them are what the hash says."""
        name = original_name(sha256)
        digest, held = hashlib.sha256(), b""
        async for chunk in self._blobs.read_file(self.org_id, name):
            if held:
                yield held
            held = chunk
            digest.update(chunk)
        if digest.hexdigest() != sha256:
            raise BlobCorrupted(name)
        yield held

    async def keep_part(self, upload_id: UUID, part: int, chunks: AsyncIterator[bytes]) -> TenantFile:
        """Keep a part of a file that is not complete yet."""
        return await self._blobs.write_file(self.org_id, chunks, part_name(upload_id, part))

    async def joined(self, upload_id: UUID, parts: int) -> AsyncIterator[bytes]:
        """The parts of an upload, one after the other."""
        for part in range(1, parts + 1):
            async for chunk in self._blobs.read_file(self.org_id, part_name(upload_id, part)):
                yield chunk

    async def keep_derived(self, document_id: UUID, name: str, data: bytes) -> TenantFile:
        """Keep what was made of a document; of the same name, in place of the one before."""
        return await self._blobs.write_file(self.org_id, _once(data), f"{derived_folder(document_id)}/{name}")

    async def derived(self, document_id: UUID, name: str) -> bytes:
        """What was made of a document, by its name."""
        chunks = self._blobs.read_file(self.org_id, f"{derived_folder(document_id)}/{name}")
        return b"".join([chunk async for chunk in chunks])

    async def extractions_of(self, document_id: UUID) -> Sequence[UUID]:
        """The extractions that have left something of a document."""
        names = await self._blobs.list_files(self.org_id, derived_folder(document_id))
        stems = [name.rpartition("/")[2].removesuffix(".json") for name in names]
        return [UUID(stem) for stem in stems if _UUID.fullmatch(stem)]

    async def remove_derived(self, document_id: UUID, names: Iterable[str]) -> None:
        """Forget some of what was made of a document."""
        folder = derived_folder(document_id)
        await self._blobs.delete_files(self.org_id, *[f"{folder}/{name}" for name in names])

    async def sweep(self, before: datetime) -> int:
        """Remove what uploads that died with their process have left before then; how much."""
        return await self._blobs.sweep(self.org_id, before)

    async def remove_original(self, sha256: str) -> None:
        """Forget a content."""
        await self._blobs.delete_files(self.org_id, original_name(sha256))

    async def remove_folder(self, folder: str) -> None:
        """Remove everything that is in a folder."""
        await self._blobs.delete_files(self.org_id, *await self._blobs.list_files(self.org_id, folder))


def elements_name(extraction_id: UUID) -> str:
    """What an extraction calls the pages that it leaves."""
    return f"{extraction_id}.json"


def original_name(sha256: str) -> str:
    """Where a file of this content is."""
    return f"original/{sha256[:2]}/{sha256}"


def derived_folder(document_id: UUID) -> str:
    """Where everything is that was made of a document."""
    return f"derived/{document_id}"


def upload_folder(upload_id: UUID) -> str:
    """Where the parts of an upload are."""
    return f"upload/{upload_id}"


def part_name(upload_id: UUID, part: int) -> str:
    """Where a part of an upload is."""
    return f"{upload_folder(upload_id)}/{part}"


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
