"""The media type of a file, by its first bytes and then by its name."""

from __future__ import annotations

from pathlib import PurePosixPath

HEAD_SIZE = 4096
"""The number of first bytes that `media_type` needs."""

_ZIP_TYPES = {
    ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ".odt": "application/vnd.oasis.opendocument.text",
    ".ods": "application/vnd.oasis.opendocument.spreadsheet",
    ".odp": "application/vnd.oasis.opendocument.presentation",
}
_TEXT_TYPES = {
    ".html": "text/html",
    ".htm": "text/html",
    ".eml": "message/rfc822",
    ".md": "text/markdown",
    ".csv": "text/csv",
    ".txt": "text/plain",
}
_SIGNATURES = (
    (b"%PDF-", "application/pdf"),
    (b"{\\rtf", "application/rtf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
)
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def media_type(name: str, head: bytes) -> str:
    """Return the media type of a file; extraction examines the file more closely."""
    suffix = PurePosixPath(name.lower()).suffix
    for signature, known in _SIGNATURES:
        if head.startswith(signature):
            return known
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    if head.startswith(b"PK\x03\x04"):
        return _ZIP_TYPES.get(suffix, "application/zip")
    if head.startswith(_OLE):
        return "application/vnd.ms-outlook" if suffix == ".msg" else "application/x-ole-storage"
    if b"%PDF-" in head[:1024]:
        return "application/pdf"
    if b"\0" in head and not head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "application/octet-stream"
    if head.lstrip()[:14].lower().startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return _TEXT_TYPES.get(suffix, "text/plain")
