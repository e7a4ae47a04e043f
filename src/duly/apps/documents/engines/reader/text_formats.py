"""Texts: from bytes to characters, by their content; then to paragraphs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from duly.apps.documents.engines.reader.lines import kind
from duly.apps.documents.engines.reader.models import Found, Trouble

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_MOST_CONTROL = 0.002
# One letter and one mark at a time: the whole text at once takes quadratic time if it is all marks.
_DECOMPOSED = re.compile(r"[A-Za-z][\u0300-\u0327]")
_BLANK = re.compile(r"\n[^\S\n]*+\n\s*+")
_TAG = re.compile(r"<[^<>]*+>")


def decoded(data: bytes) -> str:
    """The characters of a file: UTF-8, UTF-16 with its mark, else Windows-1252."""
    text = tidy(_unicode(data))
    if len(_CONTROL.findall(text)) > _MOST_CONTROL * len(text):
        raise Trouble("document.unsupported", "it is no text, and of no kind that is read")
    return text


def _unicode(data: bytes) -> str:
    encodings = next(([name] for mark, name in _MARKS if data.startswith(mark)), ["utf-8", "cp1252"])
    for name in encodings:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    raise Trouble("document.unsupported", "it is no text, and of no kind that is read")


def tidy(text: str) -> str:
    """One kind of line break, umlauts as one character."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if _DECOMPOSED.search(text):
        text = _DECOMPOSED.sub(lambda pair: unicodedata.normalize("NFC", pair[0]), text)
    return text


def paragraphs(text: str) -> Iterator[Found]:
    """A paragraph ends with an empty line."""
    for part in _BLANK.split(text):
        if said := part.strip():
            yield Found(kind(said, False), said)


def without_tags(text: str) -> str:
    """What an XML file says."""
    if "<!ENTITY" in text:
        raise Trouble("document.bomb", "it declares entities, which a document does not need")
    return _TAG.sub("\n", text)
