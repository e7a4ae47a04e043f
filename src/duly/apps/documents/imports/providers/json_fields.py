"""Reading what providers answer. Nothing is taken for granted: what is not as it should be is not there."""

from __future__ import annotations

from typing import Any


def text(said: Any, *names: str) -> str:
    """A text, by the names that lead to it; empty if there is none that could be stored."""
    for name in names:
        said = said.get(name) if isinstance(said, dict) else None
    if not isinstance(said, str) or not said.isprintable():
        return ""
    return said


def label(said: Any, name: str) -> str:
    """A text that is only to be shown, whatever is in it."""
    found = said.get(name) if isinstance(said, dict) else None
    return found if isinstance(found, str) else ""


def count(said: Any, name: str) -> int | None:
    """A whole number, also written as a text."""
    found = said.get(name) if isinstance(said, dict) else None
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:
        return int(found)
    return found if type(found) is int and found >= 0 else None


def entries(said: Any, name: str) -> list[dict[str, Any]]:
    """The objects of a list."""
    found = said.get(name) if isinstance(said, dict) else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []
