"""The engine `hires`: OCR of images, columns in reading order, the text layer where there is one."""

from __future__ import annotations

from pathlib import Path

from duly.apps.documents.engines.reader.hires.reading_order import LayoutBlock, order_blocks
from duly.apps.documents.engines.reader.models import ReadElement
from tests.apps.documents.engines import sample_files
from tests.apps.documents.engines.read_files import read_file
from tests.apps.documents.engines.sample_files import TITLE, WORDS


async def test_a_scanned_page_is_read_by_ocr(samples: Path) -> None:
    pages = (await read_file(samples / "a.pdf", "hires")).pages
    assert [page.state for page in pages] == ["text", "ocr", "blank", "text"]
    scan = pages[1]
    assert f"{TITLE} {WORDS}" in " ".join(scan.text.split())
    assert all(0.5 < (element.confidence or 0) <= 1 for element in scan.elements)
    assert scan.elements[0].box is not None
    assert {element.confidence for element in pages[0].elements} == {None}, "the text layer has no confidence"
    assert pages[0].text.startswith(TITLE)


async def test_every_frame_of_an_image_is_a_page(samples: Path) -> None:
    pages = (await read_file(samples / "two.tif", "hires")).pages
    assert [page.state for page in pages] == ["ocr", "ocr"]
    assert "Seite zwei" in pages[1].text


async def test_rotated_pages_are_read(tmp_path: Path) -> None:
    page = sample_files.picture(TITLE, WORDS, "Der Mieter zahlt am ersten Werktag des Monats.")
    left, right = (page.rotate(angle, expand=True) for angle in (90, -90))
    (tmp_path / "turned.tif").write_bytes(sample_files.saved(left, "TIFF", right))
    pages = (await read_file(tmp_path / "turned.tif", "hires")).pages
    assert [" ".join(p.text.split())[: len(TITLE) + 20] for p in pages] == [f"{TITLE} {WORDS[:19]}"] * 2
    first, second = (p.elements[0].box or (0, 0, 0, 0) for p in pages)
    assert first[0] < 0.3, "turned to the left, it begins at the left edge"
    assert first[3] > 0.8, "from below"
    assert second[2] > 0.7, "turned to the right, it begins at the right edge"
    assert second[1] < 0.2, "from above"
    assert not any(p.warnings for p in pages)


async def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(sample_files.two_columns())
    page = (await read_file(tmp_path / "a.pdf", "hires")).pages[0]
    words = page.text.split()
    assert page.text.startswith("Mitteilung")
    assert words.count("links") == words.count("rechts") == 40
    assert max(i for i, word in enumerate(words) if word == "links") < words.index("rechts")


def test_a_block_across_columns_divides_them() -> None:
    def block(name: str, left: float, top: float, right: float, bottom: float) -> LayoutBlock:
        return LayoutBlock((left, top, right, bottom), [ReadElement("NarrativeText", name)])

    blocks = [
        block("foot", 0.1, 0.9, 0.9, 0.95),
        block("right 2", 0.55, 0.4, 0.9, 0.6),
        block("left 2", 0.1, 0.4, 0.45, 0.6),
        block("right 1", 0.55, 0.2, 0.9, 0.38),
        block("head", 0.1, 0.05, 0.9, 0.1),
        block("left 1", 0.1, 0.2, 0.45, 0.38),
        block("page", 0.92, 0.9, 0.95, 0.95),
    ]
    names = [b.elements[0].text for b in order_blocks(blocks)]
    assert names == ["head", "left 1", "left 2", "right 1", "right 2", "foot", "page"]
    assert order_blocks([]) == []
