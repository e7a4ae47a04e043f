"""Decode text files by their content, and normalize their characters.

Nothing else of Duly is imported here, because the reader process uses this module as well as the analysis.
"""

from __future__ import annotations

import re
import unicodedata

_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))
# One letter and one mark at a time: the whole text at once takes quadratic time if it is all marks.
_DECOMPOSED = re.compile(r"[A-Za-z][\u0300-\u0327]")


def decode_text(data: bytes) -> str | None:
    """Decode UTF-8, UTF-16 with a byte order mark, or else Windows-1252; None if the data is none of them."""
    encodings = next(
        ([name] for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), ["utf-8", "cp1252"]
    )
    for name in encodings:
        try:
            return data.decode(name)
        except UnicodeDecodeError:
            continue
    return None


def normalize_text(text: str) -> str:
    """Use one kind of line break, and compose letters with their umlaut dots."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if _DECOMPOSED.search(text):
        text = _DECOMPOSED.sub(lambda pair: unicodedata.normalize("NFC", pair[0]), text)
    return text
