"""A file that a process of its own has open; its pages come one by one."""

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines.limits import ReaderLimits
from duly.apps.documents.engines.reader_process import Child, Died


class Reader:
    """A file that is open. Pages may be asked for in any order, and again after a break."""

    def __init__(self, path: Path, name: str, engine: Engine, limits: ReaderLimits) -> None:
        self.media_type = ""
        """By its content, whatever its name says."""
        self.pages = 0
        """How many there are; known before the first is read."""
        self.memory = 0
        """The most that a process held that read it, in bytes."""
        self._file = (path, name, engine)
        self._limits = limits
        self._child: Child | None = None
        self._deaths = 0

    async def open(self) -> None:
        """Look at the file: what it is, and how many pages it has."""
        _check_size(self._file[0], self._limits)
        said = await self._ready()
        self.media_type, self.pages = said["media_type"], said["pages"]

    async def close(self) -> None:
        """End the process, whatever it is doing."""
        child, self._child = self._child, None
        if child:
            await child.close()
            self.memory = max(self.memory, child.peak)

    async def read(self, numbers: Sequence[int]) -> AsyncGenerator[PageElements]:
        """Those pages, in this order, each as soon as it is read.

        A page that ends the process is tried once more by plainer means; if that fails too it is said to be
        unreadable, and the others follow.
        """
        left, plain = list(numbers), False
        while left:
            try:
                async with aclosing(self._pages(left[:1] if plain else left[:], plain)) as pages:
                    async for page in pages:
                        del left[0]
                        plain = False
                        yield page
            except Died as died:
                await self._bury(died)
                if plain and self.pages == 1:
                    raise UnreadableFile(died.code, died.message) from None
                if plain:
                    yield PageElements(number=left.pop(0), state="needs_ocr", warnings=("page.unreadable",))
                plain = not plain

    async def part(self, numbers: Sequence[int]) -> Path:
        """A file with only those pages of it; it lives as long as the reader. For PDF."""
        await self._ready()
        assert self._child is not None
        self._child.ask(part=list(numbers))
        try:
            said = _checked(await self._child.answer(self._limits.seconds_page))
        except Died as died:
            raise UnreadableFile(died.code, died.message) from None
        return self._child.folder / str(said["part"])

    async def _pages(self, numbers: Sequence[int], plain: bool) -> AsyncGenerator[PageElements]:
        await self._ready()
        assert self._child is not None
        self._child.ask(read=list(numbers), plain=plain)
        for number in numbers:
            page = PageElements.model_validate(_checked(await self._child.answer(self._limits.seconds_page)))
            if page.number != number:
                raise Died("document.broken", "its reader gave another page")
            yield page

    async def _ready(self) -> dict[str, Any]:
        """Start a process that has the file open, unless there is one."""
        if self._child:
            return {}
        self._child = await Child.start(self._limits)
        try:
            return _checked(await self._child.open(*self._file))
        except Died as died:
            await self.close()
            raise UnreadableFile(died.code, died.message) from None

    async def _bury(self, died: Died) -> None:
        await self.close()
        self._deaths += 1
        if self._deaths > self._limits.deaths_max:
            raise UnreadableFile(died.code, died.message) from None


def _checked(said: dict[str, Any]) -> dict[str, Any]:
    if "error" in said:
        raise UnreadableFile(str(said["error"]), str(said["message"]))
    return said


def _check_size(path: Path, limits: ReaderLimits) -> None:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) or not found.st_size:
        raise UnreadableFile("document.empty", "there is nothing in it")
    if found.st_size > limits.bytes_max:
        raise UnreadableFile(
            "document.too_large", f"it has {found.st_size:,} bytes; {limits.bytes_max:,} are read"
        )
