"""CSV, JSON Lines, PDF, page images and plans on their own."""

from __future__ import annotations

import csv
import io
import json
import uuid
from pathlib import Path

import pypdfium2
import pytest
from reportlab.pdfgen.canvas import Canvas

from duly.apps.documents.exports import page_images as drawing
from duly.apps.documents.exports.page_images import render_pages, renderer_for
from duly.apps.documents.exports.pdf import PdfWriter, font
from duly.apps.documents.exports.plan import SelectedDocument, plan_documents
from duly.apps.documents.exports.tables import to_csv, to_jsonl


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝"])  # noqa: RUF001
def test_no_cell_of_a_csv_file_is_a_formula(start: str) -> None:
    evil = f'{start}cmd|"/c calc"!A1'
    [_, row] = csv.reader(io.StringIO(to_csv(["a", "b"], [{"a": evil, "b": -5}]).decode(), newline=""))
    assert row == [f"'{evil}", "-5"], "a number is a number"


@pytest.mark.parametrize("end", [";", "\t", "\n", "\r\n"])
def test_formulas_after_other_cell_separators_are_quoted_too(end: str) -> None:
    """As a spreadsheet does that expects semicolons between values."""
    [_, row] = csv.reader(
        io.StringIO(to_csv(["a", "b"], [{"a": f"Rechnung{end}=1+1{end}x-1", "b": 1}]).decode(), newline="")
    )
    assert row == [f"Rechnung{end}'=1+1{end}x-1", "1"]


def test_a_table_keeps_every_letter_and_line() -> None:
    odd = {"name": 'Größe; "Ω", Ж\nzweite Zeile', "facts": {"a": [1, "ä"]}, "none": None}
    text = to_csv(list(odd), [odd], bom=True).decode("utf-8-sig")
    [_, row] = csv.reader(io.StringIO(text, newline=""))
    assert row == [odd["name"], '{"a": [1, "ä"]}', ""]
    assert to_csv(["a"], [], bom=True).startswith(b"\xef\xbb\xbf")
    assert json.loads(to_jsonl([odd])) == odd


def test_small_documents_share_a_file_and_large_ones_are_cut() -> None:
    ids = [uuid.uuid4() for _ in range(4)]
    chosen = [
        SelectedDocument(ids[0], 60, 9),
        SelectedDocument(ids[1], 40, 9),
        SelectedDocument(ids[2], 130, 9),
        SelectedDocument(ids[3], None, None),
    ]
    plan = plan_documents(chosen, "pdf")
    assert [batch.name for batch in plan] == [
        "documents-0001.pdf",
        "documents-0002.pdf",
        "documents-0003.pdf",
    ]
    cut = [[(ids.index(item.document_id), item.first, item.last) for item in batch.items] for batch in plan]
    assert cut == [
        [(0, 1, 50), (0, 51, 60), (1, 1, 40)],
        [(2, 1, 50), (2, 51, 100)],
        [(2, 101, 130), (3, 1, 50)],
    ]
    [table] = plan_documents(chosen, "csv")
    assert (table.name, len(table.items)) == ("documents.csv", 4)


def pdf(*texts: str) -> bytes:
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=(300, 200), invariant=1)
    for text in texts:
        canvas.drawString(20, 100, text)
        canvas.showPage()
    canvas.save()
    return out.getvalue()


async def test_pages_are_rendered_by_a_child_process(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(pdf("one", "two", "three"))
    made = await render_pages(file, "pdf", 2, 9, tmp_path)
    assert sorted(made) == [2, 3]
    assert all(picture.read_bytes().startswith(b"\xff\xd8\xff") for picture in made.values())


@pytest.mark.parametrize(
    ("content", "kind"), [(b"%PDF-1.7 broken", "pdf"), (b"\x89PNG\r\n\x1a\nbroken", "picture"), (b"", "pdf")]
)
async def test_pages_that_cannot_be_rendered_are_left_out(tmp_path: Path, content: bytes, kind: str) -> None:
    (tmp_path / "file").write_bytes(content)
    assert await render_pages(tmp_path / "file", kind, 1, 3, tmp_path) == {}


async def test_a_page_that_crashes_the_renderer_is_the_only_one_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = tmp_path / "inside.py"
    deadly.write_text(
        "import os, sys, pathlib\n"
        "for n in range(int(sys.argv[3]), int(sys.argv[4]) + 1):\n"
        "    if n == 2: os.abort()\n"
        "    pathlib.Path(sys.argv[5], f'{n}.jpg').write_bytes(b'x')\n"
        "    print(n, flush=True)\n"
    )
    monkeypatch.setattr(drawing, "_CHILD", deadly)
    assert sorted(await render_pages(tmp_path / "file", "pdf", 1, 4, tmp_path)) == [1, 3, 4]


def test_only_pdf_files_and_images_are_rendered() -> None:
    kinds = ("application/pdf", "image/png", "image/svg+xml", "text/html")
    assert [renderer_for(kind) for kind in kinds] == ["pdf", "picture", None, None]


def test_a_pdf_contains_all_words_wrapped_and_counts_missing_letters() -> None:
    paper = PdfWriter()
    words = [f"Straßenbahn{number}" for number in range(1_500)]
    paper.add_text("Ein Titel", " ".join(words) + "\n" + "x" * 2_000 + "\n\N{SNOWMAN}\0")
    data = paper.data()
    read = pypdfium2.PdfDocument(data)
    text = "\n".join(page.get_textpage().get_text_range() for page in read)
    assert len(read) == paper.pages > 3
    assert [word for word in text.split() if word.startswith("Straßenbahn")] == words
    assert text.count("x") == 2_000
    assert text.count("Ein Titel") == paper.pages
    assert paper.missing_letters == (ord("\N{SNOWMAN}") not in font().letters)
    again = PdfWriter()
    again.add_text("Ein Titel", " ".join(words) + "\n" + "x" * 2_000 + "\n\N{SNOWMAN}\0")
    assert again.data() == data, "the same content makes the same bytes"
