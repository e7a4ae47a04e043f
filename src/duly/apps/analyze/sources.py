"""Read the sources of a request: texts of the request and uploads."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from duly.apps.analyze.decoding import UnreadableSource, clean_text, decode
from duly.apps.analyze.modules import language
from duly.apps.analyze.modules.figures import remove_figures
from duly.apps.analyze.request import AnalyzeRequest, Source
from duly.blobs import BlobCorrupted, BlobNotFound, BlobStore
from duly.core.errors import ContractError


@dataclass(frozen=True)
class SourceText:
    """The text of a source, or the reason why it has none."""

    name: str
    text: str = ""
    unreadable: str | None = None
    requested_language: str = "auto"

    @cached_property
    def prose(self) -> str:
        """The text without figures: IBANs have no language, and their parts are no terms."""
        return remove_figures(self.text)

    @cached_property
    def language(self) -> str:
        """The requested or the detected language."""
        if self.requested_language != "auto":
            return self.requested_language
        return language.detect(self.prose).language


@dataclass(frozen=True)
class SourceReader:
    """Reads the sources of an org; without a blob store, only texts."""

    blobs: BlobStore | None = None
    org_id: UUID | None = None

    async def check(self, request: AnalyzeRequest) -> None:
        """Raise if an upload is unknown; one of another org is unknown too."""
        exists = await asyncio.gather(*map(self._exists, request.sources))
        if False in exists:
            raise ContractError(
                "no such blob in this org",
                field=f"sources.{exists.index(False)}.blob",
                fix="upload the file first, and pass the reference that the upload returned",
            )

    async def read(self, source: Source, requested_language: str = "auto") -> SourceText:
        """Read a source. A storage error raises; unreadable content does not."""
        try:
            text = await self._read_text(source)
        except BlobNotFound:
            return SourceText(source.name, unreadable="the upload is gone")
        except BlobCorrupted:
            return SourceText(source.name, unreadable="the upload is damaged")
        except UnreadableSource as error:
            return SourceText(source.name, unreadable=str(error))
        return SourceText(source.name, text, requested_language=requested_language)

    async def _read_text(self, source: Source) -> str:
        if source.ref is None:
            return await asyncio.to_thread(clean_text, source.text or "")
        if self.blobs is None or self.org_id is None:
            raise BlobNotFound(source.ref)
        data = await self.blobs.get(source.ref, org_id=self.org_id)
        return await asyncio.to_thread(lambda: clean_text(decode(data)))

    async def _exists(self, source: Source) -> bool:
        if source.ref is None:
            return True
        if self.blobs is None or self.org_id is None:
            return False
        return await self.blobs.exists(source.ref, org_id=self.org_id)
