"""Sample files of every supported format, all with the same words."""

from __future__ import annotations

import io
from collections.abc import Callable
from email.message import EmailMessage
from pathlib import Path

import docx
import pptx
import reportlab
import xlsxwriter
from bench.extraction.hostile import archive
from PIL import Image, ImageDraw, ImageFont
from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas

from tests.apps.documents.engines.outlook_message import message

TITLE = "Nebenkostenabrechnung"
WORDS = "Die Vorauszahlungen für das Gebäude Grüner Weg 3 betragen 1.200 Euro im Jahr."
_ODF = "urn:oasis:names:tc:opendocument:xmlns"


def picture(*lines: str, size: tuple[int, int] = (1240, 700)) -> Image.Image:
    """Return black text on white, like a page at 150 dpi."""
    made = Image.new("RGB", size, "white")
    font = ImageFont.truetype(str(Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"), 26)
    for number, line in enumerate(lines):
        ImageDraw.Draw(made).text((80, 80 + 60 * number), line, fill="black", font=font)
    return made


def saved(image: Image.Image, kind: str, *more: Image.Image) -> bytes:
    """Return the image as a file; `more` are further frames."""
    out = io.BytesIO()
    image.save(out, kind, **({"save_all": True, "append_images": list(more)} if more else {}))
    return out.getvalue()


def a_pdf() -> bytes:
    """Four pages: text, an image, nothing, and a form with a value."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    canvas.setFont("Helvetica-Bold", 20)
    canvas.drawString(72, 760, TITLE)
    canvas.setFont("Helvetica", 11)
    for line in range(3):
        canvas.drawString(72, 720 - 14 * line, WORDS)
    canvas.showPage()
    canvas.drawImage(ImageReader(picture(TITLE, WORDS)), 0, 400, 595, 336)
    canvas.showPage()
    canvas.showPage()
    canvas.drawString(72, 760, "Name des Mieters")
    canvas.acroForm.textfield(name="n", value="Schmidt", x=200, y=750, width=150, height=20)
    canvas.save()
    return out.getvalue()


def sheet(lines: str, font: str = "/BaseFont/Helvetica") -> bytes:
    """A PDF written by hand: a page with these operators on it."""
    resources = f"/Resources<</Font<</F<</Type/Font/Subtype/Type1{font}>>>>>>"
    return (
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
        f"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R{resources}>>endobj\n"
        f"4 0 obj<</Length {len(lines)}>>stream\n{lines}\nendstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
    ).encode("ascii")


def two_columns() -> bytes:
    """A page with a heading over two columns."""
    out = io.BytesIO()
    canvas = Canvas(out, pagesize=A4, invariant=1)
    canvas.setFont("Helvetica-Bold", 22)
    canvas.drawString(60, 780, "Mitteilung an alle Mieterinnen und Mieter")
    canvas.setFont("Helvetica", 10)
    for column, x in (("links", 60), ("rechts", 320)):
        for line in range(40):
            canvas.drawString(x, 740 - 14 * line, f"Zeile {line} der Spalte {column} mit einigen Worten")
    canvas.save()
    return out.getvalue()


def a_docx() -> bytes:
    """A heading, a paragraph, a list, a table."""
    made, out = docx.Document(), io.BytesIO()
    made.add_heading(TITLE, 1)
    made.add_paragraph(WORDS)
    made.add_paragraph("Heizung", style="List Bullet")
    table = made.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "Wasser", "90 €"
    made.save(out)
    return out.getvalue()


def a_docx_of_a_picture(words: str = "") -> bytes:
    """An image, and a paragraph."""
    made, out = docx.Document(), io.BytesIO()
    made.add_paragraph(words)
    made.add_picture(io.BytesIO(saved(picture(TITLE), "PNG")))
    made.save(out)
    return out.getvalue()


def a_pptx() -> bytes:
    """Two slides, the second with an image only."""
    made, out = pptx.Presentation(), io.BytesIO()
    slide = made.slides.add_slide(made.slide_layouts[1])
    slide.shapes.title.text, slide.placeholders[1].text = TITLE, WORDS
    slide = made.slides.add_slide(made.slide_layouts[6])
    slide.shapes.add_picture(io.BytesIO(saved(picture(TITLE), "PNG")), 0, 0)
    made.save(out)
    return out.getvalue()


def an_xlsx() -> bytes:
    """Two sheets."""
    out = io.BytesIO()
    book = xlsxwriter.Workbook(out, {"in_memory": True})
    for name in (TITLE, "Zweites"):
        sheet = book.add_worksheet(name)
        sheet.write_row(0, 0, ["Posten", "Betrag"])
        sheet.write_row(1, 0, [WORDS, 12.5])
    book.close()
    return out.getvalue()


def open_document(kind: str, body: str) -> bytes:
    """A minimal OpenDocument file."""
    names = " ".join(f'xmlns:{n}="{_ODF}:{n}:1.0"' for n in ("office", "text", "table", "presentation"))
    names += f' xmlns:draw="{_ODF}:drawing:1.0"'
    inner = f"<office:{kind}>{body}</office:{kind}>"
    content = f"<office:document-content {names}><office:body>{inner}</office:body></office:document-content>"
    mimetype = f"application/vnd.oasis.opendocument.{kind}".encode()
    manifest = f'<m:manifest xmlns:m="{_ODF}:manifest:1.0"/>'.encode()
    parts = [("mimetype", mimetype), ("content.xml", content.encode()), ("META-INF/manifest.xml", manifest)]
    return archive(parts)


def an_ods() -> bytes:
    """Two sheets."""
    cell = 'table:table-cell office:value-type="string"'
    cells = "".join(f"<{cell}><text:p>{t}</text:p></table:table-cell>" for t in (TITLE, WORDS))
    row = f"<table:table-row>{cells}</table:table-row>"
    names = ("Eins", "Zwei")
    return open_document(
        "spreadsheet", "".join(f'<table:table table:name="{name}">{row}</table:table>' for name in names)
    )


def an_odp() -> bytes:
    """Slides: a title and a list; a table and notes; an image only; nothing."""
    frame = "<draw:frame{}><draw:text-box>{}</draw:text-box></draw:frame>".format
    items = f"<text:list><text:list-item><text:p>{WORDS}</text:p></text:list-item></text:list>"
    cells = "".join(
        f"<table:table-cell><text:p>{text}</text:p></table:table-cell>" for text in ("Wasser", "90<text:s/>€")
    )
    table = f"<table:table><table:table-row>{cells}</table:table-row></table:table>"
    notes = f"<presentation:notes>{frame('', '<text:p>Nur<text:tab/>für mich</text:p>')}</presentation:notes>"
    slides = (
        frame(' presentation:class="title"', f"<text:p>{TITLE}</text:p>") + frame("", items),
        f"<draw:frame>{table}</draw:frame>{notes}",
        "<draw:frame><draw:image/></draw:frame>",
        "",
    )
    return open_document("presentation", "".join(f"<draw:page>{slide}</draw:page>" for slide in slides))


def an_eml() -> bytes:
    """An email with an attachment, and a body in two formats."""
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Jürgen <j@example.org>", "b@example.org", TITLE
    made["Date"] = "Mon, 01 Jun 2026 10:00:00 +0200"
    made.set_content(WORDS)
    made.add_alternative(f"<p>{WORDS}</p>", subtype="html")
    made.add_attachment(b"geheim", maintype="application", subtype="pdf", filename="../../Rechnung.pdf")
    return made.as_bytes()


def an_rtf() -> bytes:
    """A text with escaped umlauts."""
    body = "".join(c if ord(c) < 128 else f"\\'{c.encode('cp1252').hex()}" for c in f"{TITLE}\\par {WORDS}")
    return f"{{\\rtf1\\ansi\\ansicpg1252 {body}\\par}}".encode("ascii")


_HTML = f"<!doctype html><html><script>böse()</script><h1>{TITLE}</h1><p>{WORDS}</p><ul><li>Müll</ul></html>"
_ODT = f'<text:h text:outline-level="1">{TITLE}</text:h><text:p>{WORDS}</text:p>'
OFFICE = "application/vnd.openxmlformats-officedocument."
OPEN = "application/vnd.oasis.opendocument."

TEXTS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a.pdf": ("application/pdf", a_pdf),
    "a.docx": (f"{OFFICE}wordprocessingml.document", a_docx),
    "a.xlsx": (f"{OFFICE}spreadsheetml.sheet", an_xlsx),
    "a.pptx": (f"{OFFICE}presentationml.presentation", a_pptx),
    "a.odt": (f"{OPEN}text", lambda: open_document("text", _ODT)),
    "a.ods": (f"{OPEN}spreadsheet", an_ods),
    "a.odp": (f"{OPEN}presentation", an_odp),
    "a.rtf": ("application/rtf", an_rtf),
    "a.html": ("text/html", _HTML.encode),
    "a.eml": ("message/rfc822", an_eml),
    "a.msg": ("application/vnd.ms-outlook", lambda: message(TITLE, "Jürgen", "b@example.org", WORDS)),
    "a.md": ("text/markdown", f"# {TITLE}\n\n{WORDS}\n\n- eins\n".encode),
    "a.txt": ("text/plain", lambda: f"{TITLE}\n\n{WORDS}".encode("cp1252")),
    "utf16.txt": ("text/plain", lambda: f"{TITLE}\n\n{WORDS}".encode("utf-16")),
    "a.csv": ("text/csv", f"{TITLE};Betrag\n{WORDS};12\n".encode),
    "a.xml": ("text/xml", f"<?xml version='1.0'?><a><b>{TITLE}</b>{WORDS}</a>".encode),
}
"""The media type and the content of each file, by name; all have the same text."""

PICTURES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "a.png": ("image/png", lambda: saved(picture(TITLE, WORDS), "PNG")),
    "a.jpg": ("image/jpeg", lambda: saved(picture(TITLE, WORDS), "JPEG")),
    "a.webp": ("image/webp", lambda: saved(picture(TITLE, WORDS), "WEBP")),
    "two.tif": ("image/tiff", lambda: saved(picture(TITLE, WORDS), "TIFF", picture("Seite zwei"))),
}
