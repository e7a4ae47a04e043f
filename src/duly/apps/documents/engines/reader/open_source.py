"""Opens a file by what it is."""

from __future__ import annotations

from pathlib import Path

from duly.apps.documents.engines.reader import archives, markup
from duly.apps.documents.engines.reader import media_types as kinds
from duly.apps.documents.engines.reader import text_formats as texts
from duly.apps.documents.engines.reader.models import Found, Read, Source, Task, Trouble, Whole, page

_LOCKED = "EncryptedPackage".encode("utf-16-le")
_MESSAGE = "__properties_version1.0".encode("utf-16-le")


def opened(task: Task) -> tuple[str, Source]:
    """Its media type, and its pages."""
    path = Path(task.path)
    with path.open("rb") as file:
        head = file.read(kinds.HEAD)
    kind = kinds.by_magic(head)
    if kind is None:
        return _text(path.read_bytes(), head, task)
    if kind == kinds.PDF:
        from duly.apps.documents.engines.reader.pdf import Pdf

        return kind, Pdf(task)
    if kind.startswith("image/"):
        from duly.apps.documents.engines.reader.images import Images

        return kind, Images(task)
    return _packed(kind, path, task)


def _packed(kind: str, path: Path, task: Task) -> tuple[str, Source]:
    from duly.apps.documents.engines.reader import office, slides

    pictured: frozenset[int] = frozenset()
    if kind == kinds.ZIP:
        kind = archives.checked(task, path.stat().st_size)
        pictured = archives.pictured(task.path, kind)
    if kind == kinds.ODP:
        return kind, _whole(slides.read(task.path), task)
    data = path.read_bytes()
    if kind == kinds.OLE:
        _check_ole(data)
        return kinds.MSG, _whole(office.message(data), task)
    if kind == kinds.RTF:
        markup.check_rtf(data, task.limit("depth_max"))
        pictured = frozenset({1} if rb"\pict" in data else ())
    return kind, _whole(office.read(data, kind, pictured), task)


def _text(data: bytes, head: bytes, task: Task) -> tuple[str, Source]:
    kind = kinds.EML if kinds.is_mail(head) else None
    if kind:
        from duly.apps.documents.engines.reader import mail

        return kind, _whole(mail.read(data, task), task)
    if len(data) > 4 * task.limit("text_max"):
        raise Trouble("document.too_large", f"it is a text of {len(data):,} bytes")
    text = texts.decoded(data)
    kind = kinds.of_text(text, task.name)
    return kind, _whole([page(1, _elements(kind, text, task))], task)


def _elements(kind: str, text: str, task: Task) -> list[Found]:
    from duly.apps.documents.engines.reader import office

    if kind == kinds.HTML:
        return office.html(text, task)
    if kind == kinds.XML:
        return list(texts.paragraphs(texts.without_tags(text))) or list(texts.paragraphs(text))
    if kind == kinds.MARKDOWN:
        markup.check_markdown(text, task.limit("depth_max"))
    if kind in (kinds.MARKDOWN, kinds.CSV):
        return [e for read in office.read(text.encode(), kind) for e in read.elements]
    return list(texts.paragraphs(text))


def _check_ole(data: bytes) -> None:
    if _LOCKED in data:
        raise Trouble("document.encrypted", "it asks for a password")
    if _MESSAGE not in data:
        raise Trouble("document.unsupported", "it is of an old kind of Office that is not read")


def _whole(pages: list[Read], task: Task) -> Whole:
    """All of it, unless there is nothing, or more than is kept."""
    if sum(len(e.text) for read in pages for e in read.elements) > task.limit("text_max"):
        raise Trouble("document.too_large", "it has more text than is kept")
    if all(read.state == "blank" for read in pages):
        raise Trouble("document.empty", "there is no text in it")
    return Whole(pages)
