"""Open a file with the reader for its media type."""

from __future__ import annotations

from pathlib import Path

from duly.apps.documents.engines.reader import archives, media_types, text_formats
from duly.apps.documents.engines.reader.models import (
    LoadedPages,
    PageSource,
    ReadElement,
    ReadError,
    ReadPage,
    ReadTask,
    is_encrypted,
    make_page,
)

_ENCRYPTED_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_MESSAGE_PROPERTIES = "__properties_version1.0".encode("utf-16-le")


def open_source(task: ReadTask) -> tuple[str, PageSource]:
    """Return the media type of a file and its pages."""
    path = Path(task.path)
    with path.open("rb") as file:
        head = file.read(media_types.HEAD_SIZE)
    media_type = media_types.detect_binary(head)
    if media_type is None:
        return _open_text(path.read_bytes(), head, task)
    if media_type == media_types.PDF:
        from duly.apps.documents.engines.reader.pdf import PdfFile

        return media_type, PdfFile(task)
    if media_type.startswith("image/"):
        from duly.apps.documents.engines.reader.images import ImageFile

        return media_type, ImageFile(task)
    return _open_office(media_type, path, task)


def _open_office(media_type: str, path: Path, task: ReadTask) -> tuple[str, PageSource]:
    from duly.apps.documents.engines.reader import office

    with_images: frozenset[int] = frozenset()
    if media_type == media_types.ZIP:
        media_type = archives.check_archive(task, path.stat().st_size)
        with_images = archives.pages_with_images(task.path, media_type)
    if media_type == media_types.ODP:
        return media_type, _load(office.read_odp(task.path), task)
    data = path.read_bytes()
    if media_type == media_types.OLE:
        _check_outlook_message(data)
        return media_types.MSG, _load(office.read_outlook_message(data), task)
    if media_type == media_types.RTF:
        text_formats.check_rtf_depth(data, task.limit("depth_max"))
        with_images = frozenset({1} if rb"\pict" in data else ())
    return media_type, _load(office.read_office(data, media_type, with_images), task)


def _open_text(data: bytes, head: bytes, task: ReadTask) -> tuple[str, PageSource]:
    if media_types.is_mail(head):
        from duly.apps.documents.engines.reader.mail import read_mail

        return media_types.EML, _load(read_mail(data, task), task)
    if len(data) > 4 * task.limit("text_max"):
        raise ReadError("document.too_large", f"the text has {len(data):,} bytes")
    text = text_formats.decode(data)
    media_type = media_types.detect_text(text, task.name)
    return media_type, _load([make_page(1, _text_elements(media_type, text, task))], task)


def _text_elements(media_type: str, text: str, task: ReadTask) -> list[ReadElement]:
    if media_type == media_types.HTML:
        return text_formats.read_html_page(text, task.limit("depth_max"))
    if media_type == media_types.XML:
        return text_formats.read_xml(text)
    if media_type == media_types.PLAIN:
        return list(text_formats.paragraphs(text))
    from duly.apps.documents.engines.reader.office import read_office

    if media_type == media_types.MARKDOWN:
        text_formats.check_markdown_depth(text, task.limit("depth_max"))
    return [element for page in read_office(text.encode(), media_type) for element in page.elements]


def _check_outlook_message(data: bytes) -> None:
    if _ENCRYPTED_PACKAGE in data:
        raise is_encrypted()
    if _MESSAGE_PROPERTIES not in data:
        raise ReadError("document.unsupported", "legacy Office formats are not supported")


def _load(pages: list[ReadPage], task: ReadTask) -> LoadedPages:
    """Return the pages, or raise if they have no text or too much."""
    if sum(len(e.text) for page in pages for e in page.elements) > task.limit("text_max"):
        raise ReadError("document.too_large", f"the text has more than {task.limit('text_max'):,} characters")
    if all(page.state == "blank" for page in pages):
        raise ReadError("document.empty", "the file contains no text")
    return LoadedPages(pages)
