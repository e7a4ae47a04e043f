"""Messages: who, to whom, what about, when; the text; the names of what is attached."""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.policy import default

from duly.apps.documents.engines.reader import media_types as kinds
from duly.apps.documents.engines.reader import office
from duly.apps.documents.engines.reader import text_formats as texts
from duly.apps.documents.engines.reader.models import Found, Read, Task, Trouble, page

_FIELDS = ("From", "To", "Cc", "Subject", "Date")
_PARTS = 1000
_WIDEST = 2000


def read(data: bytes, task: Task) -> list[Read]:
    """The message as one page."""
    message = message_from_bytes(data, policy=default)
    assert isinstance(message, EmailMessage)
    if sum(1 for _ in message.walk()) > _PARTS:
        raise Trouble("document.bomb", "it has more parts than a message needs")
    attached = [Found("ListItem", name) for name in _attached(message)]
    elements = [*_head(message), *_body(message, task), *attached]
    return [page(1, elements, ("mail.attachments",) if attached else ())]


def _head(message: EmailMessage) -> Iterator[Found]:
    for name in _FIELDS:
        if value := _field(message, name):
            yield Found("Title" if name == "Subject" else "NarrativeText", f"{name}: {value}"[:_WIDEST])


def _field(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (MessageError, ValueError, IndexError, AttributeError, TypeError):  # a field may be anything
        return ""


def _body(message: EmailMessage, task: Task) -> list[Found]:
    body = message.get_body(preferencelist=("plain", "html"))
    if body is None:
        return []
    text = _content(body)
    if body.get_content_type() == kinds.HTML:
        return office.html(text, task)
    return list(texts.paragraphs(texts.tidy(text)))


def _content(body: MIMEPart) -> str:
    data = body.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    try:
        return data.decode(body.get_content_charset() or "utf-8")
    except (LookupError, UnicodeError):
        return texts.decoded(data)


def _attached(message: EmailMessage) -> Iterator[str]:
    for part in message.iter_attachments():
        name = part.get_filename() or part.get_content_type()
        yield " ".join(str(name).split())[:255]
