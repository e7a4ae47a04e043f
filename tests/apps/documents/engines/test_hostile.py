"""What is broken, locked or made to do harm ends with the code that says so; nothing else suffers."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.extraction.hostile import HOSTILE, flooding_pdf, pdf

from duly.apps.documents.elements import UnreadableFile
from duly.apps.documents.engines import CODES, ReaderLimits, open_file
from tests.apps.documents.engines.reading import outcome, outcomes

_SLOW_TO_MAKE = "flooding.pdf"


async def test_every_hostile_file_ends_with_its_code(tmp_path: Path) -> None:
    wanted = {name: code for name, (_, code) in HOSTILE.items() if name != _SLOW_TO_MAKE}
    for name in wanted:
        (tmp_path / name).write_bytes(HOSTILE[name][0]())
    read = await outcomes(tmp_path / name for name in wanted)
    assert {name: found.code for name, found in read.items()} == wanted
    assert set(wanted.values()) <= set(CODES)


async def test_memory_is_bounded(tmp_path: Path) -> None:
    (tmp_path / "flooding.pdf").write_bytes(flooding_pdf(200 * 1024 * 1024))
    limits = ReaderLimits(memory=150 * 1024 * 1024)
    assert (await outcome(tmp_path / "flooding.pdf", limits=limits)).code == "document.too_large"


async def test_bounds_that_a_file_meets_at_once_are_said_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf(pages=4))
    assert (await outcome(path, limits=ReaderLimits(bytes_max=100))).code == "document.too_large"
    assert (await outcome(path, limits=ReaderLimits(pages_max=3))).code == "document.too_large"


async def test_a_file_that_takes_too_long_is_given_up(shelf: Path) -> None:
    with pytest.raises(UnreadableFile) as why:
        async with open_file(shelf / "a.docx", "a.docx", "fast", ReaderLimits(seconds_open=0.001)):
            pass
    assert why.value.code == "document.too_slow"
