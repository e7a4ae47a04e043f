"""From bytes to text, by content: UTF-8, UTF-16 with its mark, else Windows-1252; HTML without its tags."""

from __future__ import annotations

import re
import unicodedata

from duly.apps.analyze.markup import is_html, text_of_html
from duly.html_reader import TooDeep

_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
_KNOWN = (
    (b"%PDF-", "a PDF file"),
    (b"PK\x03\x04", "a ZIP or Office file"),
    (b"\xd0\xcf\x11\xe0", "an old Office file"),
    (b"\x89PNG", "an image"),
    (b"\xff\xd8\xff", "an image"),
    (b"GIF8", "an image"),
    (b"\x1f\x8b", "a compressed file"),
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_MOST_CONTROL = 0.002
# One letter and one mark at a time: the whole text at once takes quadratic time if it is all marks.
_DECOMPOSED = re.compile(r"[A-Za-z][\u0300-\u0327]")


class Unreadable(Exception):
    """Not a text; the message says what it seems to be."""


def decoded(data: bytes) -> str:
    """The text of a file, or `Unreadable`."""
    for magic, what in _KNOWN:
        if data.startswith(magic):
            raise Unreadable(what)
    text = _unicode(data)
    if "\0" in text or len(_CONTROL.findall(text)) > _MOST_CONTROL * len(text):
        raise Unreadable("binary content")
    return text


def _unicode(data: bytes) -> str:
    encodings = next(([name] for mark, name in _MARKS if data.startswith(mark)), ["utf-8", "cp1252"])
    for name in encodings:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    raise Unreadable("neither UTF-8 nor Windows-1252")


def tidy(text: str) -> str:
    """One kind of line break, umlauts as one character, no tags. Offsets count in this text."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if _DECOMPOSED.search(text):
        text = _DECOMPOSED.sub(lambda pair: unicodedata.normalize("NFC", pair[0]), text)
    try:
        return text_of_html(text) if is_html(text) else text
    except TooDeep:
        raise Unreadable("an HTML page nested too deeply") from None
