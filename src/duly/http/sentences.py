"""What is wrong with a field of a request, in plain words, and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_MESSAGES = MappingProxyType(
    {
        "missing": "missing",
        "extra_forbidden": "no such field",
        "model_attributes_type": "not a JSON object",
        "model_type": "not a JSON object",
        "dict_type": "not a JSON object",
        "list_type": "not a list",
        "tuple_type": "not a list",
    }
)
_FIXES = MappingProxyType(
    {
        "missing": "send it",
        "extra_forbidden": "leave it out, or check how it is spelled",
        "string_too_short": "say something",
        "string_too_long": "shorten it",
        "too_short": "send at least one",
        "too_long": "send fewer at a time",
        "uuid_parsing": "send the id as it was given to you",
        "enum": "choose one of these",
        "literal_error": "choose one of these",
        "datetime_from_date_parsing": "write it as 2026-11-16T12:00:00Z",
        "datetime_parsing": "write it as 2026-11-16T12:00:00Z",
        "timezone_aware": "add a zone, such as Z or +02:00",
    }
)
_WHERE = ("body", "query", "path", "header", "cookie")


def field_of(found: Mapping[str, Any]) -> str:
    """The path of the field, without where it came from."""
    place = [str(part) for part in found["loc"]]
    path = ".".join(place[1:] if place[0] in _WHERE else place) or place[0]
    within = found.get("ctx", {}).get("within")
    return f"{path}.{within}" if within else path


def message_of(found: Mapping[str, Any]) -> str:
    """What is wrong."""
    said = _MESSAGES.get(found["type"]) or str(found["msg"])
    return said.removeprefix("Value error, ")


def fix_of(found: Mapping[str, Any]) -> str:
    """What to do: what the check itself says, or what its kind suggests."""
    own = found.get("ctx", {}).get("fix")
    return str(own) if own else _FIXES.get(found["type"], "see its shape in /openapi.json")
