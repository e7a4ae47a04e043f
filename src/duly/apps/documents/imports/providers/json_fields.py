"""Fields of provider responses. A field that is missing or of another type reads as empty."""

from __future__ import annotations

from typing import Any

from duly.apps.documents.imports.providers.remote import ProviderUnreachable


def text(value: Any, *names: str) -> str:
    """Return the text below these names; empty if there is none, or none that can be stored."""
    for name in names:
        value = _field(value, name)
    return value if isinstance(value, str) and value.isprintable() else ""


def label(value: Any, name: str) -> str:
    """Return a text for display, whatever it contains."""
    found = _field(value, name)
    return found if isinstance(found, str) else ""


def count(value: Any, name: str) -> int | None:
    """Return a number, which may be written as a text."""
    found = _field(value, name)
    if isinstance(found, str) and found.isascii() and found.isdigit() and len(found) < 20:
        return int(found)
    return found if type(found) is int and found >= 0 else None


def entries(value: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    found = _field(value, name)
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def cursor(value: Any, name: str) -> str:
    """Return the cursor of a listing; raise if there is none."""
    found = text(value, name)
    if not found:
        raise ProviderUnreachable("the provider's response has no cursor")
    return found


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None
