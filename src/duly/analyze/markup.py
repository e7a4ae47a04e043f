"""The text of an HTML page.

Not by html.parser: a page that never closes its comments and tags makes that quadratic, and half a minute is
too long for 200 kB that anybody may send. This one is linear, and forgiving in the same places.
"""

from __future__ import annotations

import html
import re

_HEAD = 1000
_PAGE = re.compile(r"<(?:!doctype\s{1,9}html|html)\b", re.IGNORECASE)
_HIDDEN = tuple(
    (re.compile(opening, re.IGNORECASE), re.compile(closing, re.IGNORECASE))
    for opening, closing in (
        (r"<!--", r"-->"),
        (r"<script\b", r"</script[^<>]*+>"),
        (r"<style\b", r"</style[^<>]*+>"),
        (r"<template\b", r"</template[^<>]*+>"),
    )
)
# A tag holds no `<`: so each part of the page is looked at once, however it is broken.
_TAG = re.compile(
    r"""<[/!?]?([a-zA-Z][a-zA-Z0-9:-]*+)(?:(?:[^<>"']|"[^"<]*+"|'[^'<]*+')*+|[^<>]*+)>""",
)
_SPACE = re.compile(r"[ \t\n\f]++")
_BLANK = re.compile(r" *+\n[ \n]*+")
_NAMES = """
address article aside blockquote body caption dd div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 head
header hr html legend li main nav ol p pre section table tbody tfoot thead title tr ul
"""
_BLOCKS = frozenset(_NAMES.split())


def is_html(text: str) -> bool:
    """Whether it begins like a page."""
    head = text[:_HEAD]
    return head.lstrip().startswith("<") and _PAGE.search(head) is not None


def text_of_html(page: str) -> str:
    """What a reader sees of it, a paragraph for each block."""
    for opening, closing in _HIDDEN:
        page = _without(page, opening, closing)
    page = _TAG.sub(_instead, _SPACE.sub(" ", page))
    return _BLANK.sub("\n\n", _unescaped(page)).strip()


def _without(page: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    kept, at = [], 0
    while found := opening.search(page, at):
        kept.append(page[at : found.start()])
        end = closing.search(page, found.end())
        if end is None:  # it hides the rest
            return "".join(kept)
        at = end.end()
    return "".join([*kept, page[at:]])


def _instead(tag: re.Match[str]) -> str:
    name = tag[1].lower()
    if name in _BLOCKS:
        return "\n"
    return " " if name in ("br", "td", "th", "img") else ""


def _unescaped(text: str) -> str:
    try:
        return html.unescape(text).replace("\0", " ")
    except ValueError:  # a reference to a character with thousands of digits
        return text
