"""Sources as they are read: each once, for all modules that look at it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from duly.apps.analyze.modules import language
from duly.apps.analyze.modules.figures import prose
from duly.apps.analyze.reading import Unreadable, decoded, tidy
from duly.apps.analyze.request import AnalyzeRequest, Source
from duly.blobs import BlobCorrupted, BlobNotFound, BlobStore
from duly.core.errors import ContractError


@dataclass(frozen=True)
class Document:
    """A source with its text, or the reason why it has none."""

    name: str
    text: str = ""
    unreadable: str | None = None
    asked: str = "auto"

    @cached_property
    def prose(self) -> str:
        """The text without figures: IBANs are no language, and their pieces no terms."""
        return prose(self.text)

    @cached_property
    def language(self) -> str:
        """By whose rules it is read."""
        return language.detect(self.prose).language if self.asked == "auto" else self.asked


@dataclass(frozen=True)
class Library:
    """Where the uploads of one org are; without a store, only texts can be read."""

    blobs: BlobStore | None = None
    org_id: UUID | None = None

    async def check(self, request: AnalyzeRequest) -> None:
        """Refuse uploads that this org does not have. Another org's is unknown like any other."""
        there = await asyncio.gather(*map(self._has, request.sources))
        for place, known in enumerate(there):
            if not known:
                fix = "upload it first, and pass what the upload answered"
                raise ContractError("no such blob in this org", field=f"sources.{place}.blob", fix=fix)

    async def read(self, source: Source, asked: str = "auto") -> Document:
        """The document of a source. Storage that does not answer raises; content never does."""
        try:
            text = await self._text(source)
        except BlobNotFound:
            return Document(source.name, unreadable="the upload is gone")
        except BlobCorrupted:
            return Document(source.name, unreadable="the upload is damaged")
        except Unreadable as error:
            return Document(source.name, unreadable=str(error))
        return Document(source.name, text, asked=asked)

    async def _text(self, source: Source) -> str:
        if source.ref is None:
            return await asyncio.to_thread(tidy, source.text or "")
        data = await self._data(source)
        return await asyncio.to_thread(lambda: tidy(decoded(data)))

    async def _has(self, source: Source) -> bool:
        if source.ref is None:
            return True
        if self.blobs is None or self.org_id is None:
            return False
        return await self.blobs.exists(source.ref, org_id=self.org_id)

    async def _data(self, source: Source) -> bytes:
        assert source.ref is not None
        if self.blobs is None or self.org_id is None:
            raise BlobNotFound(source.ref)
        return await self.blobs.get(source.ref, org_id=self.org_id)
