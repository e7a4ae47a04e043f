"""Every kind of file is known by its content, and its text is found in elements."""

from __future__ import annotations

from pathlib import Path

from duly.apps.documents.engines import open_file
from tests.apps.documents.engines import made
from tests.apps.documents.engines.made import PICTURES, TEXTS, TITLE, WORDS
from tests.apps.documents.engines.reading import Outcome, outcome


def test_every_kind_is_known_and_read(read: dict[str, Outcome]) -> None:
    assert {name: found.kind for name, found in read.items()} == {
        name: kind for name, (kind, _) in {**TEXTS, **PICTURES}.items()
    }
    for name in TEXTS:
        page = read[name].pages[0]
        assert (page.number, page.state) == (1, "text"), name
        assert TITLE in page.text, name
        assert WORDS in " ".join(page.text.split()), name


def test_structure_is_kept_where_a_file_has_it(read: dict[str, Outcome]) -> None:
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


def test_each_slide_of_an_open_presentation_is_a_page(read: dict[str, Outcome]) -> None:
    slides = [[(e.type, e.text) for e in page.elements] for page in read["a.odp"].pages]
    assert slides == [
        [("Title", TITLE), ("ListItem", WORDS)],
        [("Table", "Wasser\t90 €"), ("NarrativeText", "Nur\tfür mich")],
        [],
        [],
    ]


def test_pages_without_text_are_never_taken_for_empty_ones(read: dict[str, Outcome]) -> None:
    states = {name: [page.state for page in found.pages] for name, found in read.items()}
    assert states["a.pdf"] == ["text", "needs_ocr", "blank", "text"]
    assert states["a.pptx"] == ["text", "needs_ocr"]
    assert states["a.odp"] == ["text", "text", "needs_ocr", "blank"]
    assert states["two.tif"] == ["needs_ocr", "needs_ocr"]
    assert {tuple(states[name]) for name in ("a.png", "a.jpg", "a.webp")} == {("needs_ocr",)}
    assert "Schmidt" in read["a.pdf"].pages[3].text, "what was filled into a form"


async def test_a_text_that_is_only_a_picture_waits_for_recognition(tmp_path: Path) -> None:
    path = tmp_path / "scan.docx"
    path.write_bytes(made.a_docx_of_a_picture())
    assert [page.state for page in (await outcome(path)).pages] == ["needs_ocr"]
    path.write_bytes(made.a_docx_of_a_picture("Siehe Anlage"))
    [page] = (await outcome(path)).pages
    assert (page.state, page.warnings) == ("text", ("office.pictures",))
    assert page.text.startswith("Siehe Anlage")


def test_a_message_names_what_is_attached_and_does_not_read_it(read: dict[str, Outcome]) -> None:
    page = read["a.eml"].pages[0]
    assert page.warnings == ("mail.attachments",)
    assert "Rechnung.pdf" in page.elements[-1].text
    assert "geheim" not in page.text
    assert page.text.startswith("From: Jürgen <j@example.org>")
    assert page.text.count(WORDS) == 1, "of two bodies one is read"


async def test_the_name_of_a_file_is_neither_believed_nor_followed(shelf: Path) -> None:
    for name in ("a.docx", "../../etc/passwd", "x\0y.png", "C:\\con", "a" * 5000, ""):
        async with open_file(shelf / "a.pdf", name, "fast") as reader:
            assert (reader.media_type, reader.pages) == ("application/pdf", 4)


async def test_words_that_one_reading_leaves_out_are_taken_from_the_other(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(made.sheet("BT /F 11 Tf 50 -100 Td (Der Mieter zahlt am ersten Werktag) Tj ET"))
    page = (await outcome(path)).pages[0]
    assert (page.text, page.warnings) == ("Der Mieter zahlt am ersten Werktag", ("page.plain",))


async def test_a_text_layer_without_letters_counts_as_none(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    names = " ".join(f"/uniE{number:03X}" for number in range(26))
    font = f"/BaseFont/X/Encoding<</Type/Encoding/Differences[65 {names}]>>"
    path.write_bytes(made.sheet("BT /F 11 Tf 50 700 Td (MIETVERTRAG) Tj ET", font))
    page = (await outcome(path)).pages[0]
    assert (page.state, page.elements, page.warnings) == ("needs_ocr", (), ("page.fonts_broken",))


async def test_dots_that_stand_by_themselves_come_to_their_letters(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    at = "BT /F 11 Tf {} 700 Td ({}) Tj ET".format
    lines = (at(50, "fur Gebaude"), at(54.3, r"\310"), at(90.2, r"\310"))
    path.write_bytes(made.sheet(" ".join(lines)))
    page = (await outcome(path)).pages[0]
    assert (page.text, page.warnings) == ("für Gebäude", ("page.plain",))
    path.write_bytes(made.sheet(at(50, r"Das geht\302s")))
    page = (await outcome(path)).pages[0]
    assert (page.text, page.warnings) == ("Das geht\u00b4s", ())
