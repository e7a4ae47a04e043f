"""Analyze the sources of a request: a chunk per source and module, then the report."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from duly.apps.analyze.aggregate import build_report, summarize
from duly.apps.analyze.modules import language
from duly.apps.analyze.modules.figures import find_figures
from duly.apps.analyze.modules.key_terms import key_terms
from duly.apps.analyze.modules.similarity import sketch_text
from duly.apps.analyze.modules.statistics import text_statistics
from duly.apps.analyze.report import Part, Report, Summary
from duly.apps.analyze.request import AnalyzeRequest, Module, Source
from duly.apps.analyze.sources import SourceReader, SourceText

_FUNCTIONS: Mapping[Module, Callable[[SourceText], Any]] = {
    Module.LANGUAGE: lambda source: language.detect(source.prose),
    Module.SIZE: lambda source: text_statistics(source.text, source.language),
    Module.TERMS: lambda source: key_terms(source.prose, source.language),
    Module.FIGURES: lambda source: find_figures(source.text, source.requested_language),
    Module.LIKENESS: lambda source: sketch_text(source.text),
}
_NEED_LANGUAGE = {Module.SIZE, Module.TERMS}
_MAX_INLINE_CHARACTERS = 5_000
"""Characters of a text that is analyzed in the event loop, not in a thread."""


def analyze_source(source: SourceText, module: Module) -> Part:
    """Analyze a source by one module."""
    if source.unreadable is not None:
        return Part(source=source.name, unreadable=source.unreadable)
    return Part(source=source.name, **{module.value: _FUNCTIONS[module](source)})


class Analysis:
    """The analysis of one request. It caches the source that was read last."""

    def __init__(self, request: AnalyzeRequest, reader: SourceReader) -> None:
        self._request = request
        self._reader = reader
        self._source: SourceText | None = None

    async def prepare(self) -> None:
        """Raise if a library or an upload is missing."""
        modules = self._request.modules
        detects_language = self._request.language == "auto" and _NEED_LANGUAGE.intersection(modules)
        if Module.LANGUAGE in modules or detects_language:
            await asyncio.to_thread(language.check_installed)
        await self._reader.check(self._request)

    async def read(self, source: Source) -> SourceText:
        """Return the text of a source."""
        if self._source is None or self._source.name != source.name:
            self._source = None  # free the memory of the last one first
            self._source = await self._reader.read(source, self._request.language)
        return self._source

    async def analyze(self, source: SourceText, module: Module) -> Part:
        """Analyze a source by one module, in a thread if the text is long."""
        if len(source.text) <= _MAX_INLINE_CHARACTERS:
            return analyze_source(source, module)
        return await asyncio.to_thread(analyze_source, source, module)

    async def report(self, parts: list[Part]) -> Report:
        """Build the report of all parts."""
        return await asyncio.to_thread(build_report, self._request, parts)


async def analyze_now(request: AnalyzeRequest, reader: SourceReader | None = None) -> Summary:
    """Analyze small sources without a job, and return the summary."""
    analysis = Analysis(request, reader or SourceReader())
    await analysis.prepare()
    parts = [
        await analysis.analyze(await analysis.read(chunk.source), chunk.module) for chunk in request.chunks
    ]
    return summarize(await analysis.report(parts))
