"""How deep markup is nested, before anything that recurses gets to see it."""

from __future__ import annotations

import re

from duly.apps.documents.engines.reader.models import Trouble


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
