"""Error codes and warnings of extraction. They are part of the API and never renamed."""

from __future__ import annotations

from collections.abc import Mapping

CODES: Mapping[str, str] = {
    "document.empty": "The file is empty or contains no text.",
    "document.unsupported": "The format of the file is not supported.",
    "document.encrypted": "The file is encrypted: remove its password.",
    "document.broken": "The file is damaged.",
    "document.too_large": "The file, its text or the memory to read it exceeds a limit.",
    "document.too_slow": "Reading the file takes too long.",
    "document.too_deep": "The file is nested too deeply.",
    "document.bomb": "The file unpacks to far more than its size.",
    "document.hostile": "The file is an attack: it has names that lead out of the archive, for example.",
    "remote.refused": "The remote service rejected the file or the API key.",
    "remote.nonsense": "The remote service sent an invalid response.",
}

WARNINGS: Mapping[str, str] = {
    "page.plain": "The structure of the page was not recognized; it was read line by line.",
    "page.unreadable": "The page could not be read; the others were read.",
    "page.layout_missing": "The layout of the page was not recognized; its text is in the order of the file.",
    "page.picture": "The page is mostly an image, which was not read.",
    "page.unsure": "OCR had low confidence.",
    "page.fonts_broken": "The text layer is not readable; OCR was used instead.",
    "office.pictures": "The document has images, which were not read.",
    "mail.attachments": "The email has attachments, which are listed but not read.",
}
