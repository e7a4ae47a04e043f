"""What kind of file it is: by what it begins with, then by its name."""

from __future__ import annotations

from pathlib import PurePosixPath

HEAD = 4096
"""How much of a file's beginning decides."""

_ZIPPED = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odp": "application/vnd.oasis.opendocument.presentation",
}
_TEXTS = {
    ".html": "text/html",
    ".htm": "text/html",
    ".eml": "message/rfc822",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".txt": "text/plain",
}
_BEGINNINGS = (
    (b"%PDF-", "application/pdf"),
    (b"{\\rtf", "application/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def media_type(name: str, head: bytes) -> str:
    """The type of a file; extraction looks closer."""
    suffix = PurePosixPath(name.lower()).suffix
    for beginning, found in _BEGINNINGS:
        if head.startswith(beginning):
            return found
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"PK\x03\x04"):
        return _ZIPPED.get(suffix, "application/zip")
    if head.startswith(_OLE):
        return "application/vnd.ms-outlook" if suffix == ".msg" else "application/x-ole-storage"
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "application/octet-stream"
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return _TEXTS.get(suffix, "text/plain")
