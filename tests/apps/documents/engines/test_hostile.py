"""Broken, encrypted and hostile files end with their error code."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.extraction.hostile import HOSTILE, flooding_pdf, pdf

from duly.apps.documents.elements import UnreadableFile
from duly.apps.documents.engines import CODES, ReaderLimits, open_file
from tests.apps.documents.engines.read_files import read_file, read_files

_SLOW_TO_CREATE = "flooding.pdf"


async def test_every_hostile_file_ends_with_its_code(tmp_path: Path) -> None:
    expected = {name: code for name, (_, code) in HOSTILE.items() if name != _SLOW_TO_CREATE}
    for name in expected:
        (tmp_path / name).write_bytes(HOSTILE[name][0]())
    read = await read_files(tmp_path / name for name in expected)
    assert {name: found.code for name, found in read.items()} == expected
    assert set(expected.values()) <= set(CODES)


async def test_memory_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "flooding.pdf").write_bytes(flooding_pdf(200 * 1024 * 1024))
    limits = ReaderLimits(memory=150 * 1024 * 1024)
    assert (await read_file(tmp_path / "flooding.pdf", limits=limits)).code == "document.too_large"


async def test_size_and_page_limits_are_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(pages=4))
    assert (await read_file(path, limits=ReaderLimits(bytes_max=100))).code == "document.too_large"
    assert (await read_file(path, limits=ReaderLimits(pages_max=3))).code == "document.too_large"


async def test_a_file_that_takes_too_long_fails(samples: Path) -> None:
    with pytest.raises(UnreadableFile) as refused:
        async with open_file(samples / "a.docx", "a.docx", "fast", ReaderLimits(seconds_open=0.001)):
            pass
    assert refused.value.code == "document.too_slow"
