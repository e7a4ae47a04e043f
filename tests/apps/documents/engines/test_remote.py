"""The Unstructured API: what is sent, what becomes of its answers, and what is never sent."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path

import pypdf
import pytest
from bench.extraction.hostile import pdf
from unstructured_client import UnstructuredClient
from unstructured_client.models import operations, shared

from duly.apps.documents.elements import Engine, PageElements, UnreadableFile
from duly.apps.documents.engines import ReaderLimits, RemoteUnavailable, Unstructured, open_file
from duly.core.errors import ConfigurationError
from tests.apps.documents.engines.unstructured_fake import KEY, Fake, fake_unstructured


@pytest.fixture
def service() -> Iterator[Fake]:
    with fake_unstructured() as fake:
        yield fake


async def read(
    path: Path, service: Fake, numbers: list[int], engine: Engine = "unstructured_fast", key: str = KEY
) -> list[PageElements]:
    remote = Unstructured(service.url, key, max_response=100_000)
    async with open_file(path, "a.pdf", engine, ReaderLimits(), remote=remote) as reader:
        assert reader.pages == 4
        return [page async for page in reader.read(numbers)]


async def test_only_the_pages_that_are_asked_for_leave_the_house(shelf: Path, service: Fake) -> None:
    pages = await read(shelf / "a.pdf", service, [1, 2, 4])
    assert [page.number for page in pages] == [1, 2, 4]
    assert [element.text for element in pages[2].elements] == [
        "Title auf Seite 3",
        "NarrativeText auf Seite 3",
    ]
    assert pages[0].elements[0].box == (0.1, 0.1, 0.5, 0.12)
    assert pages[0].elements[0].confidence == 0.9
    assert len(pypdf.PdfReader(io.BytesIO(service.files[0])).pages) == 3
    assert service.forms[0]["strategy"] == ["fast"]
    await read(shelf / "a.pdf", service, [1], "unstructured_hires")
    assert service.forms[1]["strategy"] == ["hi_res"]


async def test_a_page_of_which_nothing_is_said_is_blank_only_if_it_is(shelf: Path, service: Fake) -> None:
    service.body = b"[]"
    states = [page.state for page in await read(shelf / "a.pdf", service, [2, 3])]
    assert states == ["needs_ocr", "blank"]


async def test_what_is_broken_or_locked_is_never_sent(tmp_path: Path, service: Fake) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(password="geheim"))
    with pytest.raises(UnreadableFile) as why:
        await read(tmp_path / "a.pdf", service, [1])
    assert (why.value.code, service.forms) == ("document.encrypted", [])


@pytest.mark.parametrize(("status", "after"), [(429, 7.0), (503, 7.0), (500, None)])
async def test_a_service_that_is_busy_is_to_be_asked_again(
    shelf: Path, service: Fake, status: int, after: float | None
) -> None:
    service.status, service.headers = status, {"retry-after": "7"} if after else {}
    with pytest.raises(RemoteUnavailable) as why:
        await read(shelf / "a.pdf", service, [1])
    assert why.value.retry_after == after


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "remote.refused"), (413, "document.too_large"), (422, "document.unsupported")],
)
async def test_what_the_service_does_not_take_ends_with_a_code(
    shelf: Path, service: Fake, status: int, code: str
) -> None:
    service.status = status
    with pytest.raises(UnreadableFile) as why:
        await read(shelf / "a.pdf", service, [1])
    assert why.value.code == code


@pytest.mark.parametrize("body", [b"not json", b'{"a": 1}', b'[{"type": "Title"}]', b"[1]", b"[" * 200_000])
async def test_an_answer_that_is_no_list_of_elements_is_nonsense(
    shelf: Path, service: Fake, body: bytes
) -> None:
    service.body = body
    with pytest.raises(UnreadableFile) as why:
        await read(shelf / "a.pdf", service, [1])
    assert why.value.code == "remote.nonsense"


async def test_the_key_is_said_nowhere(shelf: Path, service: Fake, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(0)
    with pytest.raises(UnreadableFile) as why:
        await read(shelf / "a.pdf", service, [1], key="falsch-und-geheim")
    assert why.value.code == "remote.refused"
    told = f"{why.value!r} {Unstructured('http://x', 'falsch-und-geheim')!r} {caplog.text}"
    assert "falsch" not in told


async def test_without_a_service_the_engine_is_not_configured(shelf: Path) -> None:
    with pytest.raises(ConfigurationError):
        async with open_file(shelf / "a.pdf", "a.pdf", "unstructured_fast"):
            pass


async def test_the_official_client_is_understood_by_the_same_service(shelf: Path, service: Fake) -> None:
    """Both send the same fields, so what our client is tested with is what the service expects."""
    await read(shelf / "a.pdf", service, [1])

    def official() -> list[dict[str, object]] | None:
        with UnstructuredClient(api_key_auth=KEY, server_url=service.url) as client:
            asked = shared.PartitionParameters(
                files=shared.Files(content=pdf(), file_name="a.pdf"),
                strategy=shared.Strategy.FAST,
                languages=["deu", "eng"],
                coordinates=True,
                starting_page_number=1,
                split_pdf_page=False,
            )
            request = operations.PartitionRequest(partition_parameters=asked)
            return client.general.partition(request=request).elements

    elements = await asyncio.to_thread(official)
    assert elements is not None
    assert len(elements) == 6
    ours, theirs = service.forms
    assert {name: theirs.get(name) for name in ours} == ours
