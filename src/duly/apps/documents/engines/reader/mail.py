"""Emails: header fields, text body, and the names of attachments."""

from __future__ import annotations

from collections.abc import Iterator
from email import message_from_bytes
from email.errors import MessageError
from email.message import EmailMessage, MIMEPart
from email.policy import default

from duly.apps.documents.engines.reader import media_types, text_formats
from duly.apps.documents.engines.reader.models import ReadElement, ReadError, ReadPage, ReadTask, make_page
from duly.text_decoding import normalize_text

_FIELDS = ("From", "To", "Cc", "Subject", "Date")
_MAX_PARTS = 1000
_MAX_FIELD_LENGTH = 2000


def read_mail(data: bytes, task: ReadTask) -> list[ReadPage]:
    """Return the email as one page."""
    message = message_from_bytes(data, policy=default)
    assert isinstance(message, EmailMessage)
    if sum(1 for _ in message.walk()) > _MAX_PARTS:
        raise ReadError("document.bomb", f"the email has more than {_MAX_PARTS:,} parts")
    attachments = [ReadElement("ListItem", name) for name in _attachment_names(message)]
    elements = [*_header(message), *_body(message, task), *attachments]
    return [make_page(1, elements, ("mail.attachments",) if attachments else ())]


def _header(message: EmailMessage) -> Iterator[ReadElement]:
    for name in _FIELDS:
        if value := _field(message, name):
            element_type = "Title" if name == "Subject" else "NarrativeText"
            yield ReadElement(element_type, f"{name}: {value}"[:_MAX_FIELD_LENGTH])


def _field(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except (MessageError, ValueError, IndexError, AttributeError, TypeError):  # malformed fields
        return ""


def _body(message: EmailMessage, task: ReadTask) -> list[ReadElement]:
    body = message.get_body(preferencelist=("plain", "html"))
    if body is None:
        return []
    text = _body_text(body)
    if body.get_content_type() == media_types.HTML:
        return text_formats.read_html_page(text, task.limit("depth_max"))
    return list(text_formats.paragraphs(normalize_text(text)))


def _body_text(body: MIMEPart) -> str:
    data = body.get_payload(decode=True)
    data = data if isinstance(data, bytes) else b""
    try:
        return data.decode(body.get_content_charset() or "utf-8")
    except (LookupError, UnicodeError):
        return text_formats.decode(data)


def _attachment_names(message: EmailMessage) -> Iterator[str]:
    for part in message.iter_attachments():
        name = part.get_filename() or part.get_content_type()
        yield " ".join(str(name).split())[:255]
