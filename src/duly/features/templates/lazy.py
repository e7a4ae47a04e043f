"""Words, apart from what fills them in: that takes a moment to load, and few have anything to say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Words(NamedTuple):
    """What a message says: as a template, or as it is told."""

    subject: str
    body: str


def check(words: Words) -> None:
    """Raise if a template is none, or has what it may not have."""
    from duly.features.templates import engine as templates

    templates.check(words)


def render(words: Words, payload: Mapping[str, Any], locale: str, *, strict: bool = False) -> Words:
    """The words of one message, with its values; on a thread, please."""
    from duly.features.templates import engine as templates

    return templates.render(words, payload, locale, strict=strict)
