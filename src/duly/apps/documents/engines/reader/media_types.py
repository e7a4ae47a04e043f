"""Detect the media type of a file by its content; the name only tells text formats apart."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from duly.apps.documents.engines.reader.models import ReadError

HEAD_SIZE = 64 * 1024
_OFFICE = "application/vnd.openxmlformats-officedocument."
DOCX = _OFFICE + "wordprocessingml.document"
XLSX = _OFFICE + "spreadsheetml.sheet"
PPTX = _OFFICE + "presentationml.presentation"
ODT, ODS, ODP = (
    f"application/vnd.oasis.opendocument.{name}" for name in ("text", "spreadsheet", "presentation")
)
PDF, RTF, MSG, EML = "application/pdf", "application/rtf", "application/vnd.ms-outlook", "message/rfc822"
HTML, XML, MARKDOWN, CSV, PLAIN = "text/html", "text/xml", "text/markdown", "text/csv", "text/plain"
ZIP, OLE = "application/zip", "application/x-ole-storage"

_MAGIC = (
    (b"{\\rtf", RTF),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", OLE),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"II+\0", "image/tiff"),
    (b"MM\0+", "image/tiff"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_UNSUPPORTED = (
    b"\x1f\x8b",
    b"7z\xbc\xaf",
    b"Rar!",
    b"\x7fELF",
    b"MZ\x90",
    b"BZh",
    b"\xfd7zXZ",
    b"SQLite format 3\0",
)
_SUFFIXES = {".md": MARKDOWN, ".markdown": MARKDOWN, ".csv": CSV, ".tsv": CSV}
_HEADER_FIELD = re.compile(rb"([!-9;-~]{1,76}):[ \t\r]")
_MAIL_HEADERS = frozenset(
    (b"from", b"to", b"subject", b"date", b"received", b"return-path", b"message-id", b"mime-version")
)
_HTML_TAG = re.compile(r"<(?:!doctype\s{1,9}html|html|head|body|h1|div|table|p)(?=[\s>/])", re.IGNORECASE)


def detect_binary(head: bytes) -> str | None:
    """Return the media type by the magic bytes; None if the file may be text."""
    if b"%PDF-" in head[:1024]:
        return PDF
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head[:2] == b"BM" and head[6:10] == b"\0\0\0\0":
        return "image/bmp"
    if head.startswith(_UNSUPPORTED):
        raise ReadError("document.unsupported", "files of this format are not supported")
    return next((media_type for magic, media_type in _MAGIC if head.startswith(magic)), None)


def detect_text(text: str, name: str) -> str:
    """Return the media type of a text that is not an email."""
    start = text[:2000].lstrip("\ufeff \t\r\n")
    if start.startswith("<") and _HTML_TAG.search(start):
        return HTML
    if start.startswith("<?xml"):
        return XML
    return _SUFFIXES.get(PurePosixPath(name.replace("\\", "/")).suffix.lower(), PLAIN)


def is_mail(head: bytes) -> bool:
    """Return whether the file begins with header fields, at least two of them specific to emails."""
    known = set()
    for line in head.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if not line.strip():
            break
        field = _HEADER_FIELD.match(line)
        if field is None and not line.startswith((b" ", b"\t", b"From ")):
            return False
        known |= {field[1].lower()} & _MAIL_HEADERS if field else set()
    return len(known) >= 2
