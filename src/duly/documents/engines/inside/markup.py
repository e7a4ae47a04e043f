"""How deep markup is nested, before anything that recurses gets to see it."""

from __future__ import annotations

import re

from duly.documents.engines.inside.found import Trouble

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]*+)[^<>]*+>")
_FLAT = """
area base body br caption col colgroup dd dt embed head hr html img input li link meta optgroup option p param
source tbody td tfoot th thead tr track wbr
"""
_NOT_COUNTED = frozenset(_FLAT.split())
"""They have no content, or need not be closed."""


def check_html(text: str, most: int) -> None:
    """Refuse a page whose elements lie too deep within one another."""
    depth = 0
    for tag in _TAG.finditer(text):
        if tag[2].lower() in _NOT_COUNTED or tag[0].endswith("/>"):
            continue
        depth = max(0, depth - 1) if tag[1] else depth + 1
        _check(depth, most)


def check_rtf(data: bytes, most: int) -> None:
    """Refuse a text whose groups lie too deep within one another."""
    depth = 0
    for brace in re.finditer(rb"\\[{}\\]|([{}])", data):
        if brace[1]:
            depth += 1 if brace[1] == b"{" else -1
            _check(depth, most)


def check_markdown(text: str, most: int) -> None:
    """Refuse quotes in quotes, and lists in lists, that go on without end."""
    for line in text.split("\n"):
        lead = re.match(r"[\s>*+-]*+", line)
        _check(sum(char in ">*+-" for char in lead[0]) if lead and len(line) > most else 0, most)
        _check(max(line.count("["), line.count("(")) // 10, most)


def _check(depth: int, most: int) -> None:
    if depth > most:
        raise Trouble("document.too_deep", "its parts lie too deep within one another")
