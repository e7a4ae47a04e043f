"""The work itself, the same for a job and for an answer at once: chunk by chunk, then all together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from duly.apps.analyze.aggregate import reported, summed_up
from duly.apps.analyze.documents import Document, Library
from duly.apps.analyze.modules import language
from duly.apps.analyze.modules.figures import figures
from duly.apps.analyze.modules.likeness import sketch
from duly.apps.analyze.modules.size import measure
from duly.apps.analyze.modules.terms import key_terms
from duly.apps.analyze.report import Part, Report, Summary
from duly.apps.analyze.request import AnalyzeRequest, Module, Piece, Source

_LOOKS: Mapping[Module, Callable[[Document], Any]] = {
    Module.LANGUAGE: lambda document: language.detect(document.prose),
    Module.SIZE: lambda document: measure(document.text, document.language),
    Module.TERMS: lambda document: key_terms(document.prose, document.language),
    Module.FIGURES: lambda document: figures(document.text, document.asked),
    Module.LIKENESS: lambda document: sketch(document.text),
}
_SPEAKING = {Module.SIZE, Module.TERMS}
_AT_ONCE = 5_000
"""Characters that are looked at without leaving the event loop."""


def part_of(document: Document, module: Module) -> Part:
    """One module's findings in one document."""
    if document.unreadable is not None:
        return Part(source=document.name, unreadable=document.unreadable)
    return Part(source=document.name, **{module.value: _LOOKS[module](document)})


class Desk:
    """Where one request is worked on; the source at hand lies open."""

    def __init__(self, request: AnalyzeRequest, library: Library) -> None:
        self._request = request
        self._library = library
        self._open: Document | None = None

    async def prepare(self) -> None:
        """Refuse what cannot be done at all, before anything is."""
        request = self._request
        if Module.LANGUAGE in request.modules or (
            request.language == "auto" and _SPEAKING.intersection(request.modules)
        ):
            await asyncio.to_thread(language.check_installed)
        await self._library.check(request)

    async def document(self, source: Source) -> Document:
        """The source, read; the next module finds it open."""
        if self._open is None or self._open.name != source.name:
            self._open = None  # two large ones need not be held at once
            self._open = await self._library.read(source, self._request.language)
        return self._open

    async def part(self, document: Document, module: Module) -> Part:
        """One chunk, beside the event loop if that takes long."""
        if len(document.text) <= _AT_ONCE:
            return part_of(document, module)
        return await asyncio.to_thread(part_of, document, module)

    async def report(self, parts: list[Part]) -> Report:
        """All together."""
        return await asyncio.to_thread(reported, self._request, parts)


async def analyze_now(request: AnalyzeRequest, library: Library | None = None) -> Summary:
    """The summary at once, without a job and its files: for what `cost` says is small."""
    desk = Desk(request, library or Library())
    await desk.prepare()
    parts = [await _part(desk, piece) for piece in request.pieces]
    return summed_up(await desk.report(parts))


async def _part(desk: Desk, piece: Piece) -> Part:
    return await desk.part(await desk.document(piece.source), piece.module)
