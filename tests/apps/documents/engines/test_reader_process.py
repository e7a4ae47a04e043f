"""The reader process: it can be killed at any time, gets no secrets, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path

import psutil
import pytest
from bench.extraction.hostile import flooding_pdf, pdf

from duly.apps.documents.elements import PageElements, UnreadableFile
from duly.apps.documents.engines import FileReader, ReaderLimits, open_file
from tests.apps.documents.engines.read_files import LIMITS


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A file of twelve pages."""
    path = tmp_path / "lang.pdf"
    path.write_bytes(pdf(pages=12))
    return path


def child(reader: FileReader) -> psutil.Process:
    assert reader._process is not None
    return psutil.Process(reader._process.pid)


async def read_pages(reader: FileReader, numbers: list[int]) -> list[PageElements]:
    return [page async for page in reader.read(numbers)]


async def test_only_the_requested_pages_are_read_in_their_order(long: Path) -> None:
    async with open_file(long, "a", "fast", LIMITS) as reader:
        assert [page.number for page in await read_pages(reader, [7, 3, 12])] == [7, 3, 12]
        assert [page.text for page in await read_pages(reader, [1])] == ["Guten Tag 1"]


async def kill(reader: FileReader) -> None:
    assert reader._process is not None
    os.kill(reader._process.pid, signal.SIGKILL)
    # Not by psutil: its wait would reap the process and take the exit status.
    await reader._process._process.wait()


async def test_a_killed_process_is_replaced(long: Path) -> None:
    async with open_file(long, "a", "fast", LIMITS) as reader:
        first = await read_pages(reader, [1, 2, 3])
        await kill(reader)
        rest = await read_pages(reader, [4, 5])
    assert [page.text for page in (*first, *rest)] == [f"Guten Tag {number}" for number in range(1, 6)]


async def test_a_page_that_crashes_every_process_is_unreadable_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    (tmp_path / "flut.pdf").write_bytes(flooding_pdf(120 * 1024 * 1024, beside=2))
    async with open_file(
        tmp_path / "flut.pdf", "a", "fast", ReaderLimits(memory=140 * 1024 * 1024)
    ) as reader:
        pages = await read_pages(reader, [1, 2, 3, 4, 5])
    assert [page.number for page in pages] == [1, 2, 3, 4, 5]
    assert [page.text for page in pages] == ["Tag", "Tag", "", "Tag", "Tag"]
    assert (pages[2].state, pages[2].warnings) == ("needs_ocr", ("page.unreadable",))


async def test_a_file_that_crashes_too_many_processes_fails(long: Path) -> None:
    async with open_file(long, "a", "fast", ReaderLimits(deaths_max=1)) as reader:
        await kill(reader)
        assert len(await read_pages(reader, [1])) == 1
        await kill(reader)
        with pytest.raises(UnreadableFile) as refused:
            await read_pages(reader, [2])
    assert refused.value.code == "document.too_large"


async def test_cancellation_leaves_no_process_and_no_folder(long: Path) -> None:
    began, held = asyncio.Event(), []

    async def work() -> None:
        async with open_file(long, "a", "fast", LIMITS) as reader:
            held.append((child(reader), reader._process.folder))
            began.set()
            await asyncio.Event().wait()

    working = asyncio.create_task(work())
    await began.wait()
    working.cancel()
    await asyncio.gather(working, return_exceptions=True)
    process, folder = held[0]
    assert not process.is_running()
    assert not folder.exists()


async def test_the_process_gets_no_secrets_and_has_its_own_group(
    long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DULY_DATABASE_URL", "postgresql://geheim@host/db")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    async with open_file(long, "a", "fast", LIMITS) as reader:
        await read_pages(reader, [1])
        process = child(reader)
        known = process.environ()
        assert not [name for name in known if name.startswith(("DULY", "PG", "AWS"))]
        assert "geheim" not in str(known) + str(process.cmdline())
        assert os.getpgid(process.pid) == process.pid != os.getpgid(0)
        assert process.cwd().startswith(known["TMPDIR"])
        assert not process.net_connections()
        assert process.rlimit(psutil.RLIMIT_CORE) == (0, 0)
        assert 0 < process.rlimit(psutil.RLIMIT_AS)[0] < 3 * 1024**3
        assert not [m for m in process.memory_maps() if "psycopg" in m.path], (
            "the database driver is not loaded"
        )
    assert list((tmp_path / "temporary").iterdir()) == []
