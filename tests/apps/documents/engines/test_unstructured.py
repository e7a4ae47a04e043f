"""The Unstructured API: requests, responses, and files that are never sent."""

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


async def test_only_the_requested_pages_are_sent(samples: Path, service: Fake) -> None:
    pages = await read(samples / "a.pdf", service, [1, 2, 4])
    assert [page.number for page in pages] == [1, 2, 4]
    assert [element.text for element in pages[2].elements] == [
        "Title auf Seite 3",
        "NarrativeText auf Seite 3",
    ]
    assert pages[0].elements[0].box == (0.1, 0.1, 0.5, 0.12)
    assert pages[0].elements[0].confidence == 0.9
    assert len(pypdf.PdfReader(io.BytesIO(service.files[0])).pages) == 3
    assert service.forms[0]["strategy"] == ["fast"]
    await read(samples / "a.pdf", service, [1], "unstructured_hires")
    assert service.forms[1]["strategy"] == ["hi_res"]


async def test_a_page_without_elements_is_blank_only_if_it_is_empty(samples: Path, service: Fake) -> None:
    service.body = b"[]"
    states = [page.state for page in await read(samples / "a.pdf", service, [2, 3])]
    assert states == ["needs_ocr", "blank"]


async def test_encrypted_files_are_never_sent(tmp_path: Path, service: Fake) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf(password="geheim"))
    with pytest.raises(UnreadableFile) as refused:
        await read(tmp_path / "a.pdf", service, [1])
    assert (refused.value.code, service.forms) == ("document.encrypted", [])


@pytest.mark.parametrize(("status", "after"), [(429, 7.0), (503, 7.0), (500, None)])
async def test_an_overloaded_service_is_retryable(
    samples: Path, service: Fake, status: int, after: float | None
) -> None:
    service.status, service.headers = status, {"retry-after": "7"} if after else {}
    with pytest.raises(RemoteUnavailable) as refused:
        await read(samples / "a.pdf", service, [1])
    assert refused.value.retry_after == after


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "remote.refused"), (413, "document.too_large"), (422, "document.unsupported")],
)
async def test_a_rejected_file_has_an_error_code(
    samples: Path, service: Fake, status: int, code: str
) -> None:
    service.status = status
    with pytest.raises(UnreadableFile) as refused:
        await read(samples / "a.pdf", service, [1])
    assert refused.value.code == code


@pytest.mark.parametrize("body", [b"not json", b'{"a": 1}', b'[{"type": "Title"}]', b"[1]", b"[" * 200_000])
async def test_an_invalid_response_is_an_error(samples: Path, service: Fake, body: bytes) -> None:
    service.body = body
    with pytest.raises(UnreadableFile) as refused:
        await read(samples / "a.pdf", service, [1])
    assert refused.value.code == "remote.nonsense"


async def test_the_key_is_never_logged(
    samples: Path, service: Fake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    with pytest.raises(UnreadableFile) as refused:
        await read(samples / "a.pdf", service, [1], key="falsch-und-geheim")
    assert refused.value.code == "remote.refused"
    output = f"{refused.value!r} {Unstructured('http://x', 'falsch-und-geheim')!r} {caplog.text}"
    assert "falsch" not in output


async def test_without_a_service_the_engine_is_not_configured(samples: Path) -> None:
    with pytest.raises(ConfigurationError):
        async with open_file(samples / "a.pdf", "a.pdf", "unstructured_fast"):
            pass


async def test_the_official_client_sends_the_same_fields(samples: Path, service: Fake) -> None:
    """So the fake service of these tests behaves as the real one expects."""
    await read(samples / "a.pdf", service, [1])

    def official() -> list[dict[str, object]] | None:
        with UnstructuredClient(api_key_auth=KEY, server_url=service.url) as client:
            parameters = shared.PartitionParameters(
                files=shared.Files(content=pdf(), file_name="a.pdf"),
                strategy=shared.Strategy.FAST,
                languages=["deu", "eng"],
                coordinates=True,
                starting_page_number=1,
                split_pdf_page=False,
            )
            request = operations.PartitionRequest(partition_parameters=parameters)
            return client.general.partition(request=request).elements

    elements = await asyncio.to_thread(official)
    assert elements is not None
    assert len(elements) == 6
    ours, theirs = service.forms
    assert {name: theirs.get(name) for name in ours} == ours
