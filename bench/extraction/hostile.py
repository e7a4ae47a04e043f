"""Crafted harmful files, and the codes that they must end with."""

from __future__ import annotations

import io
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable

from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

_MB = 1024 * 1024
_TYPES = b'<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>'
_BODY = '<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>'
_LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
_ENTITIES = f'<!DOCTYPE x [<!ENTITY a0 "ha">{_LAUGHS}]>'


def archive(parts: Iterable[tuple[str, bytes]]) -> bytes:
    """A ZIP archive of these parts, under any names."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in parts:
            packed.writestr(name, data)
    return out.getvalue()


def docx(document: bytes, *more: tuple[str, bytes]) -> bytes:
    """A file that looks like a Word document."""
    return archive([("[Content_Types].xml", _TYPES), ("word/document.xml", document), *more])


def pdf(text: str = "Guten Tag", password: str | None = None, pages: int = 1) -> bytes:
    """A small PDF."""
    out = io.BytesIO()
    locked = StandardEncryption(password, strength=128) if password else None
    canvas = Canvas(out, pagesize=A4, encrypt=locked, invariant=1)
    for number in range(pages):
        canvas.drawString(72, 720, f"{text} {number + 1}")
        canvas.showPage()
    canvas.save()
    return out.getvalue()


def ole(*names: str) -> bytes:
    """The beginning of a compound file, enough to detect its type."""
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\0" * 504
    return head + b"".join(name.encode("utf-16-le").ljust(128, b"\0") for name in names)


def lying_docx() -> bytes:
    """An archive that declares a large part as small."""
    data = docx(b" " * (32 * _MB))
    return data.replace(struct.pack("<I", 32 * _MB), struct.pack("<I", 100))


def large_png(side: int = 60_000) -> bytes:
    """An image of a few bytes and billions of pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")
    )


def deep_mail(depth: int = 3_000) -> bytes:
    """A deeply nested message."""
    heads = (f'Content-Type: multipart/mixed; boundary="b{i}"\n\n--b{i}\n' for i in range(depth))
    return b"From: a@example.org\nTo: b@example.org\nMIME-Version: 1.0\n" + "".join(heads).encode()


def looping_pdf() -> bytes:
    """A PDF whose pages are their own children."""
    return (
        b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        b"2 0 obj<</Type/Pages/Kids[2 0 R 2 0 R]/Count 999999999>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"
    )


def flooding_pdf(size: int = 600 * _MB, beside: int = 0) -> bytes:
    """A PDF with a decompression bomb as a page between two ordinary ones."""
    packer = zlib.compressobj(1)
    piece = b"BT /F 9 Tf 50 50 Td (Tag) Tj ET\n" * (_MB // 32)
    flood = b"".join([*(packer.compress(piece) for _ in range(size // _MB)), packer.flush()])
    pages = [3, *range(4, 4 + 2 * beside)]
    kids = " ".join(f"{number} 0 R" for number in (*pages[1 : beside + 1], 3, *pages[beside + 1 :]))
    page = (
        "{} 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents {} 0 R"
        "/Resources<</Font<</F<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj\n"
    )
    texts = "".join(page.format(number, 101 if number == 3 else 102) for number in pages)
    head = (
        "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
        f"2 0 obj<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>endobj\n{texts}"
        "102 0 obj<</Length 31>>stream\nBT /F 9 Tf 50 50 Td (Tag) Tj ET\nendstream endobj\n"
        f"101 0 obj<</Filter/FlateDecode/Length {len(flood)}>>stream\n"
    )
    return head.encode() + flood + b"\nendstream endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"


def damaged(data: bytes, seed: int) -> bytes:
    """A truncated file, or one with changed bytes."""
    chance = random.Random(seed)
    if seed % 3 == 0:
        return data[: chance.randrange(len(data) // 4, len(data)) + 1]
    changed = bytearray(data)
    for _ in range(max(3, len(data) // (5_000 if seed % 3 == 1 else 200))):
        changed[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(changed)


def locked_odt() -> bytes:
    """A LibreOffice document with a password."""
    space = "urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"
    entry = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    manifest = f'<manifest:manifest xmlns:manifest="{space}">{entry}</manifest:manifest>'
    mimetype = b"application/vnd.oasis.opendocument.text"
    parts = [("mimetype", mimetype), ("content.xml", bytes(99)), ("META-INF/manifest.xml", manifest.encode())]
    return archive(parts)


def _nested(opening: str, closing: str, depth: int = 50_000) -> bytes:
    return (opening * depth + "x" + closing * depth).encode()


_Made = tuple[Callable[[], bytes], str]
HOSTILE: dict[str, _Made] = {
    "nothing.pdf": (lambda: b"", "document.empty"),
    "blanks.txt": (lambda: b" \n\t\n", "document.empty"),
    "no-text.docx": (lambda: docx(f"{_BODY}</w:body></w:document>".encode()), "document.empty"),
    "only-the-name.pdf": (lambda: b"%PDF-1.7\nnothing else", "document.broken"),
    "half.docx": (lambda: docx(os.urandom(9_000))[:5_000], "document.broken"),
    "half.png": (lambda: large_png(100)[:40], "document.broken"),
    "looping.pdf": (looping_pdf, "document.broken"),
    "locked.pdf": (lambda: pdf(password="secret"), "document.encrypted"),
    "locked.xlsx": (lambda: ole("EncryptionInfo", "EncryptedPackage"), "document.encrypted"),
    "locked.odt": (locked_odt, "document.encrypted"),
    "old.doc": (lambda: ole("WordDocument"), "document.unsupported"),
    "program.pdf": (lambda: b"\x7fELF" + bytes(2_000), "document.unsupported"),
    "noise.txt": (lambda: random.Random(1).randbytes(20_000), "document.unsupported"),
    "packed.docx": (lambda: archive([("a.txt", b"hello")]), "document.unsupported"),
    "bomb.docx": (lambda: docx(b" " * (40 * _MB)), "document.bomb"),
    "lying.docx": (lying_docx, "document.bomb"),
    "many.docx": (lambda: docx(b"<a/>", *((f"word/{i}.xml", b"") for i in range(20_000))), "document.bomb"),
    "laughs.docx": (lambda: docx(f"{_ENTITIES}<x>&a9;</x>".encode()), "document.bomb"),
    "laughs-16.docx": (lambda: docx(f"{_ENTITIES}<x>&a9;</x>".encode("utf-16")), "document.bomb"),
    "laughs.xml": (lambda: f"<?xml version='1.0'?>{_ENTITIES}<x>&a9;</x>".encode(), "document.bomb"),
    "large.png": (large_png, "document.bomb"),
    "way-out.docx": (lambda: docx(b"<a/>", ("../../../tmp/x", b"x")), "document.hostile"),
    "root.docx": (lambda: docx(b"<a/>", ("/etc/passwd", b"x")), "document.hostile"),
    "deep.docx": (lambda: docx(_BODY.encode() + _nested("<w:p>", "</w:p>")), "document.too_deep"),
    "deep.html": (lambda: b"<!doctype html>" + _nested("<div>", "</div>"), "document.too_deep"),
    "deep.rtf": (lambda: b"{\\rtf1 " + _nested("{", "}") + b"}", "document.too_deep"),
    "deep.md": (lambda: _nested("> ", ""), "document.too_deep"),
    "deep.eml": (deep_mail, "document.too_deep"),
    "long.txt": (lambda: b"Wort " * (10 * _MB), "document.too_large"),
    "flooding.pdf": (flooding_pdf, "document.too_large"),
}
"""By name: the function that creates the file, and the expected code."""
