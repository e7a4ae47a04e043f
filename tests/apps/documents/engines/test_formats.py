"""Every format is detected by content, and its text extracted as elements."""

from __future__ import annotations

from pathlib import Path

from duly.apps.documents.engines import open_file
from tests.apps.documents.engines import sample_files
from tests.apps.documents.engines.read_files import ReadResult, read_file
from tests.apps.documents.engines.sample_files import PICTURES, TEXTS, TITLE, WORDS


def test_every_format_is_detected_and_read(read: dict[str, ReadResult]) -> None:
    assert {name: found.media_type for name, found in read.items()} == {
        name: media_type for name, (media_type, _) in {**TEXTS, **PICTURES}.items()
    }
    for name in TEXTS:
        page = read[name].pages[0]
        assert (page.number, page.state) == (1, "text"), name
        assert TITLE in page.text, name
        assert WORDS in " ".join(page.text.split()), name


def test_the_structure_of_a_file_becomes_element_types(read: dict[str, ReadResult]) -> None:
    types = {name: [element.type for element in found.pages[0].elements] for name, found in read.items()}
    assert types["a.docx"] == ["Title", "NarrativeText", "ListItem", "Table"]
    assert types["a.html"] == ["Title", "NarrativeText", "ListItem"]
    assert types["a.pdf"][0] == "Title"
    table = read["a.xlsx"].pages[1].elements
    assert [e.type for e in table] == ["Title", "Table"]
    assert table[1].text == f"Posten\tBetrag\n{WORDS}\t12.5"
    assert [page.elements[0].text for page in read["a.ods"].pages] == ["Eins", "Zwei"]
    box = read["a.pdf"].pages[0].elements[0].box
    assert box is not None
    assert 0.1 < box[0] < 0.15
    assert 0.05 < box[1] < box[3] < 0.11


def test_each_slide_of_an_opendocument_presentation_is_a_page(read: dict[str, ReadResult]) -> None:
    slides = [[(e.type, e.text) for e in page.elements] for page in read["a.odp"].pages]
    assert slides == [
        [("Title", TITLE), ("ListItem", WORDS)],
        [("Table", "Wasser\t90 €"), ("NarrativeText", "Nur\tfür mich")],
        [],
        [],
    ]


def test_pages_with_images_only_need_ocr_and_are_not_blank(read: dict[str, ReadResult]) -> None:
    states = {name: [page.state for page in found.pages] for name, found in read.items()}
    assert states["a.pdf"] == ["text", "needs_ocr", "blank", "text"]
    assert states["a.pptx"] == ["text", "needs_ocr"]
    assert states["a.odp"] == ["text", "text", "needs_ocr", "blank"]
    assert states["two.tif"] == ["needs_ocr", "needs_ocr"]
    assert {tuple(states[name]) for name in ("a.png", "a.jpg", "a.webp")} == {("needs_ocr",)}
    assert "Schmidt" in read["a.pdf"].pages[3].text, "the value of a form field"


async def test_a_document_of_an_image_needs_ocr(tmp_path: Path) -> None:
    path = tmp_path / "scan.docx"
    path.write_bytes(sample_files.a_docx_of_a_picture())
    assert [page.state for page in (await read_file(path)).pages] == ["needs_ocr"]
    path.write_bytes(sample_files.a_docx_of_a_picture("Siehe Anlage"))
    [page] = (await read_file(path)).pages
    assert (page.state, page.warnings) == ("text", ("office.pictures",))
    assert page.text.startswith("Siehe Anlage")


def test_attachments_of_an_email_are_listed_and_not_read(read: dict[str, ReadResult]) -> None:
    page = read["a.eml"].pages[0]
    assert page.warnings == ("mail.attachments",)
    assert "Rechnung.pdf" in page.elements[-1].text
    assert "geheim" not in page.text
    assert page.text.startswith("From: Jürgen <j@example.org>")
    assert page.text.count(WORDS) == 1, "of two bodies one is read"


async def test_the_name_of_a_file_does_not_matter(samples: Path) -> None:
    for name in ("a.docx", "../../etc/passwd", "x\0y.png", "C:\\con", "a" * 5000, ""):
        async with open_file(samples / "a.pdf", name, "fast") as reader:
            assert (reader.media_type, reader.pages) == ("application/pdf", 4)


async def test_text_that_xberg_loses_is_taken_from_pdfium(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(sample_files.sheet("BT /F 11 Tf 50 -100 Td (Der Mieter zahlt am ersten Werktag) Tj ET"))
    page = (await read_file(path)).pages[0]
    assert (page.text, page.warnings) == ("Der Mieter zahlt am ersten Werktag", ("page.plain",))


async def test_a_text_layer_of_unmapped_glyphs_needs_ocr(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    names = " ".join(f"/uniE{number:03X}" for number in range(26))
    font = f"/BaseFont/X/Encoding<</Type/Encoding/Differences[65 {names}]>>"
    path.write_bytes(sample_files.sheet("BT /F 11 Tf 50 700 Td (MIETVERTRAG) Tj ET", font))
    page = (await read_file(path)).pages[0]
    assert (page.state, page.elements, page.warnings) == ("needs_ocr", (), ("page.fonts_broken",))


async def test_separate_umlaut_dots_are_composed_with_their_letters(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    at = "BT /F 11 Tf {} 700 Td ({}) Tj ET".format
    lines = (at(50, "fur Gebaude"), at(54.3, r"\310"), at(90.2, r"\310"))
    path.write_bytes(sample_files.sheet(" ".join(lines)))
    page = (await read_file(path)).pages[0]
    assert (page.text, page.warnings) == ("für Gebäude", ("page.plain",))
    path.write_bytes(sample_files.sheet(at(50, r"Das geht\302s")))
    page = (await read_file(path)).pages[0]
    assert (page.text, page.warnings) == ("Das geht\u00b4s", ())
