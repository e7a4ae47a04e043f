"""The Unstructured API: the only engine that sends a file to an external service, and that costs money.

The file is opened locally first: a broken, encrypted or hostile file is never sent; the pages are counted.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duly.apps.documents.elements import Element, Engine, PageElements, UnreadableFile
from duly.apps.documents.engines.file_reader import FileReader
from duly.apps.documents.engines.limits import ReaderLimits
from duly.core.outcome import parse_retry_after

if TYPE_CHECKING:
    import httpx

_PATH = "/general/v0/general"
_PAGES_PER_REQUEST = 20
"""Pages of a PDF in one request: they are paid twice if the response is lost."""
_LANGUAGES = ("deu", "eng")
_CODES = {413: "document.too_large", 415: "document.unsupported", 422: "document.unsupported"}
_PDF = "application/pdf"


class RemoteUnavailable(Exception):
    """The service is overloaded or unreachable; a retry may succeed."""

    def __init__(self, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds of the Retry-After header."""


@dataclass(frozen=True)
class Unstructured:
    """A client of the Unstructured API."""

    url: str
    key: str = field(repr=False)
    timeout: float = 300.0
    max_response: int = 64 * 1024 * 1024
    """Bytes."""

    async def partition(self, file: Path, media_type: str, *, hires: bool) -> list[Any]:
        """Send a file, and return its elements as the service describes them."""
        import httpx

        form: dict[str, Any] = {
            "strategy": "hi_res" if hires else "fast",
            "languages[]": list(_LANGUAGES),
            "coordinates": "true",
            "output_format": "application/json",
            "starting_page_number": "1",
        }
        headers = {"unstructured-api-key": self.key, "accept": "application/json"}
        try:
            async with httpx.AsyncClient(timeout=self.timeout, trust_env=False) as client:
                with file.open("rb") as content:
                    files = {"files": ("document", content, media_type)}
                    async with client.stream(
                        "POST", self.url.rstrip("/") + _PATH, data=form, files=files, headers=headers
                    ) as response:
                        return await self._parse(response)
        except httpx.TransportError as error:
            raise RemoteUnavailable(f"could not reach the remote service: {type(error).__name__}") from None

    async def _parse(self, response: httpx.Response) -> list[Any]:
        status = response.status_code
        if status == 429 or status >= 500:
            retry_after = parse_retry_after(response.headers.get("retry-after", ""), datetime.now(UTC))
            raise RemoteUnavailable(f"the remote service returned {status}", retry_after)
        if status != 200:
            raise UnreadableFile(
                _CODES.get(status, "remote.refused"), f"the remote service returned {status}"
            )
        body = bytearray()
        async for part in response.aiter_bytes():
            body += part
            if len(body) > self.max_response:
                raise UnreadableFile(
                    "remote.nonsense", f"the response has more than {self.max_response:,} bytes"
                )
        try:
            elements = json.loads(body)
        except (ValueError, RecursionError):
            raise _invalid_response() from None
        if not isinstance(elements, list):
            raise _invalid_response()
        return elements


class UnstructuredReader(FileReader):
    """A file that the service reads; locally it is only opened, counted and split."""

    def __init__(
        self, path: Path, name: str, engine: Engine, limits: ReaderLimits, remote: Unstructured
    ) -> None:
        super().__init__(path, name, "fast", limits)
        self._path = path
        self._hires = engine == "unstructured_hires"
        self._remote = remote

    async def read(self, numbers: Sequence[int]) -> AsyncGenerator[PageElements]:
        """Yield these pages. Of a PDF only they are sent, in batches."""
        step = _PAGES_PER_REQUEST if self.media_type == _PDF else max(1, len(numbers))
        for start in range(0, len(numbers), step):
            batch = list(numbers[start : start + step])
            elements = await self._request_elements(batch)
            for number in batch:
                yield await self._page(number, elements.get(number, []))

    async def _request_elements(self, numbers: list[int]) -> dict[int, list[Element]]:
        """Return the elements of these pages by page number."""
        is_pdf = self.media_type == _PDF
        file = await self.extract_pdf(numbers) if is_pdf else self._path
        pages: dict[int, list[Element]] = {}
        for described in await self._remote.partition(file, self.media_type, hires=self._hires):
            page, element = _parse_element(described)
            # It numbers the pages of the sent part from 1; an unknown page number means the last page.
            number = numbers[min(page, len(numbers)) - 1] if is_pdf else min(page, self.pages)
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


def _parse_element(described: Any) -> tuple[int, Element]:
    """Return the page number and the element that the service describes."""
    try:
        metadata = described.get("metadata") or {}
        confidence = metadata.get("detection_class_prob")
        element = Element(
            type=str(described["type"]),
            text=str(described["text"]).strip().replace("\0", ""),
            box=_parse_box(metadata.get("coordinates")),
            confidence=min(1.0, max(0.0, float(confidence))) if confidence is not None else None,
        )
        return max(1, int(metadata.get("page_number") or 1)), element
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _invalid_response() from None


def _parse_box(coordinates: Mapping[str, Any] | None) -> tuple[float, float, float, float] | None:
    if not coordinates or not coordinates.get("points"):
        return None
    width, height = float(coordinates["layout_width"]), float(coordinates["layout_height"])
    across = [_share(point[0], width) for point in coordinates["points"]]
    down = [_share(point[1], height) for point in coordinates["points"]]
    return min(across), min(down), max(across), max(down)


def _share(value: float, whole: float) -> float:
    return round(min(1.0, max(0.0, float(value) / whole)), 4) if whole > 0 else 0.0


def _invalid_response() -> UnreadableFile:
    return UnreadableFile("remote.nonsense", "the remote service did not return a list of elements")
