"""An open file: its pages, read by a child process that is restarted when a page crashes it."""

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines.limits import ReaderLimits
from duly.apps.documents.engines.reader_process import ReaderDied, ReaderProcess


class FileReader:
    """An open file. Pages can be read in any order and more than once."""

    def __init__(self, path: Path, name: str, engine: Engine, limits: ReaderLimits) -> None:
        self.media_type = ""
        """The media type by content; the name does not matter."""
        self.pages = 0
        """The number of pages."""
        self.memory = 0
        """The peak memory of the reader processes in bytes."""
        self._file = (path, name, engine)
        self._limits = limits
        self._process: ReaderProcess | None = None
        self._deaths = 0

    async def open(self) -> None:
        """Detect the media type, and count the pages."""
        _check_size(self._file[0], self._limits)
        response = await self._ensure_process()
        self.media_type, self.pages = response["media_type"], response["pages"]

    async def close(self) -> None:
        """Kill the process."""
        process, self._process = self._process, None
        if process:
            await process.close()
            self.memory = max(self.memory, process.peak_memory)

    async def read(self, numbers: Sequence[int]) -> AsyncGenerator[PageElements]:
        """Yield these pages in this order, each as soon as it is read.

        A page that crashes the process is read once more in fallback mode; if that fails too, the page is
        reported as unreadable, and the others follow.
        """
        remaining, fallback = list(numbers), False
        while remaining:
            try:
                async with aclosing(
                    self._read(remaining[:1] if fallback else remaining[:], fallback)
                ) as pages:
                    async for page in pages:
                        del remaining[0]
                        fallback = False
                        yield page
            except ReaderDied as error:
                await self._count_death(error)
                if fallback and self.pages == 1:
                    raise UnreadableFile(error.code, error.message) from None
                if fallback:
                    yield PageElements(
                        number=remaining.pop(0), state="needs_ocr", warnings=("page.unreadable",)
                    )
                fallback = not fallback

    async def extract_pdf(self, numbers: Sequence[int]) -> Path:
        """Write these pages of a PDF to a file of their own, which exists until the reader is closed."""
        await self._ensure_process()
        assert self._process is not None
        self._process.send(part=list(numbers))
        try:
            response = _check_response(await self._process.receive(self._limits.seconds_page))
        except ReaderDied as error:
            raise UnreadableFile(error.code, error.message) from None
        return self._process.folder / str(response["part"])

    async def _read(self, numbers: Sequence[int], fallback: bool) -> AsyncGenerator[PageElements]:
        await self._ensure_process()
        assert self._process is not None
        self._process.send(read=list(numbers), fallback=fallback)
        for number in numbers:
            response = _check_response(await self._process.receive(self._limits.seconds_page))
            page = PageElements.model_validate(response)
            if page.number != number:
                raise ReaderDied("document.broken", f"the reader sent page {page.number} instead of {number}")
            yield page

    async def _ensure_process(self) -> dict[str, Any]:
        """Start a process and open the file, unless one is running."""
        if self._process:
            return {}
        self._process = await ReaderProcess.start(self._limits)
        try:
            return _check_response(await self._process.open(*self._file))
        except ReaderDied as error:
            await self.close()
            raise UnreadableFile(error.code, error.message) from None

    async def _count_death(self, error: ReaderDied) -> None:
        await self.close()
        self._deaths += 1
        if self._deaths > self._limits.deaths_max:
            raise UnreadableFile(error.code, error.message) from None


def _check_response(response: dict[str, Any]) -> dict[str, Any]:
    if "error" in response:
        raise UnreadableFile(str(response["error"]), str(response["message"]))
    return response


def _check_size(path: Path, limits: ReaderLimits) -> None:
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or not status.st_size:
        raise UnreadableFile("document.empty", "the file is empty")
    if status.st_size > limits.bytes_max:
        raise UnreadableFile(
            "document.too_large", f"the file has {status.st_size:,} bytes; the limit is {limits.bytes_max:,}"
        )
