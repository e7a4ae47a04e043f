"""The Unstructured API: the only engine that sends a file out of the house, and that costs money.

The file is opened here first: what is broken, locked or hostile is never sent, and the pages are counted.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duly.apps.documents.elements import Element, Engine, PageElements, UnreadableFile
from duly.apps.documents.engines.file_reader import Reader
from duly.apps.documents.engines.limits import ReaderLimits

if TYPE_CHECKING:
    import httpx

_PATH = "/general/v0/general"
_BATCH = 20
"""Pages of a PDF in one request: what is paid twice if the answer gets lost."""
_LANGUAGES = ("deu", "eng")
_CODES = {413: "document.too_large", 415: "document.unsupported", 422: "document.unsupported"}
_PDF = "application/pdf"


class Unavailable(Exception):
    """The service is busy, or out of reach; trying again later may help."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that it asked for."""


@dataclass(frozen=True)
class Unstructured:
    """Where the service is, and the key that it knows us by."""

    url: str
    key: str = field(repr=False)
    seconds: float = 300.0
    answer_max: int = 64 * 1024 * 1024
    """Bytes of one answer."""

    async def partition(self, file: Path, media_type: str, *, hires: bool, first: int = 1) -> list[Any]:
        """What it finds in the file: elements as it describes them."""
        import httpx

        form: dict[str, Any] = {
            "strategy": "hi_res" if hires else "fast",
            "languages[]": list(_LANGUAGES),
            "coordinates": "true",
            "output_format": "application/json",
            "starting_page_number": str(first),
        }
        headers = {"unstructured-api-key": self.key, "accept": "application/json"}
        try:
            async with httpx.AsyncClient(timeout=self.seconds, trust_env=False) as client:
                with file.open("rb") as content:
                    files = {"files": ("document", content, media_type)}
                    async with client.stream(
                        "POST", self.url.rstrip("/") + _PATH, data=form, files=files, headers=headers
                    ) as answer:
                        return await self._understood(answer)
        except httpx.TransportError as trouble:
            raise Unavailable(f"the remote service is out of reach: {type(trouble).__name__}") from None

    async def _understood(self, answer: httpx.Response) -> list[Any]:
        if answer.status_code == 429 or answer.status_code >= 500:
            raise Unavailable(
                f"the remote service answered {answer.status_code}", _retry_after(answer.headers)
            )
        if answer.status_code != 200:
            code = _CODES.get(answer.status_code, "remote.refused")
            raise UnreadableFile(code, f"the remote service answered {answer.status_code}")
        body = bytearray()
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > self.answer_max:
                raise UnreadableFile("remote.nonsense", f"it answered more than {self.answer_max:,} bytes")
        return _list(bytes(body))


class RemoteReader(Reader):
    """A file that the service reads; here it is only opened, counted and cut."""

    def __init__(
        self, path: Path, name: str, engine: Engine, limits: ReaderLimits, remote: Unstructured
    ) -> None:
        super().__init__(path, name, "fast", limits)
        self._path = path
        self._hires = engine == "unstructured_hires"
        self._remote = remote

    async def read(self, numbers: Sequence[int]) -> AsyncGenerator[PageElements]:
        """Those pages. Of a PDF only they are sent, a few at a time."""
        step = _BATCH if self.media_type == _PDF else max(1, len(numbers))
        for start in range(0, len(numbers), step):
            some = list(numbers[start : start + step])
            found = await self._found(some)
            for number in some:
                yield await self._page(number, found.get(number, []))

    async def _found(self, numbers: list[int]) -> dict[int, list[Element]]:
        pdf = self.media_type == _PDF
        file = await self.part(numbers) if pdf else self._path
        elements = await self._remote.partition(file, self.media_type, hires=self._hires)
        pages: dict[int, list[Element]] = {}
        for said in elements:
            at, element = _mapped(said)
            # Of the part that was sent it counts from 1; what names a page that is not there is on the last.
            number = numbers[min(at, len(numbers)) - 1] if pdf else min(at, self.pages)
            if element.text:
                pages.setdefault(number, []).append(element)
        return pages

    async def _page(self, number: int, elements: list[Element]) -> PageElements:
        if elements:
            return PageElements(
                number=number, state="ocr" if self._hires else "text", elements=tuple(elements)
            )
        async for page in super().read([number]):
            if page.state == "blank":
                return page
        return PageElements(number=number, state="blank" if self._hires else "needs_ocr")


def _mapped(said: Any) -> tuple[int, Element]:
    """An element of theirs as one of ours, and the page that it is on."""
    try:
        metadata = said.get("metadata") or {}
        sure = metadata.get("detection_class_prob")
        element = Element(
            type=str(said["type"]),
            text=str(said["text"]).strip().replace("\0", ""),
            box=_box(metadata.get("coordinates")),
            confidence=min(1.0, max(0.0, float(sure))) if sure is not None else None,
        )
        return max(1, int(metadata.get("page_number") or 1)), element
    except (AttributeError, KeyError, TypeError, ValueError):
        raise UnreadableFile(
            "remote.nonsense", "the remote service answered with no list of elements"
        ) from None


def _box(said: Mapping[str, Any] | None) -> tuple[float, float, float, float] | None:
    if not said or not said.get("points"):
        return None
    width, height = float(said["layout_width"]), float(said["layout_height"])
    across = [_share(point[0], width) for point in said["points"]]
    down = [_share(point[1], height) for point in said["points"]]
    return min(across), min(down), max(across), max(down)


def _share(value: float, whole: float) -> float:
    return round(min(1.0, max(0.0, float(value) / whole)), 4) if whole > 0 else 0.0


def _list(body: bytes) -> list[Any]:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        said = None
    if not isinstance(said, list):
        raise UnreadableFile("remote.nonsense", "the remote service answered with no list of elements")
    return said


def _retry_after(headers: Mapping[str, str]) -> float | None:
    said = headers.get("retry-after", "").strip()
    return float(said) if said.isascii() and said.isdigit() else None
