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
        "string_pattern_mismatch": "not of the form that is wanted",
    }
)
FORMS = MappingProxyType(
    {
        "^(evt|msg)_[0-9a-f]{32}_[1-9][0-9]{0,8}$": "send the id as it was given to you",
        "^[a-z][a-z0-9_]{0,49}$": "begin with a small letter; then up to 49 small letters, digits and _",
        r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$": "small letters, digits, _ and dots, as in job.failed",
        "^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})?$": "name a language, as in de or de-AT",
        "^[0-9a-f]{64}$": "send 64 hex digits in lower case",
        r"^\w+$": "letters, digits and _ only",
        "^[a-z][a-z0-9_]{1,39}$": "begin with a small letter; then 1 to 39 small letters, digits and _",
        "^[a-z]{1,20}$": "up to 20 small letters",
        r"^(user|api_key):[^\x00-\x1f]+$": "write user:<id> or api_key:<id>",
        "^[a-z][a-z0-9_]*$": "begin with a small letter; then small letters, digits and _",
        "^(env:[A-Z][A-Z0-9_]{0,63}|file:[a-z0-9][a-z0-9_.-]{0,63})$": "as in env:DROPBOX or file:dropbox",
        "^[A-Za-z0-9!_.-]{1,255}$": "up to 255 letters, digits and ! _ . -",
        "^[^/]+$": "leave out slashes",
        "^whsec_[A-Za-z0-9+/]{32,86}={0,2}$": "whsec_ and 24 to 64 bytes in base64",
    }
)
"""The patterns of our fields in words: nobody should have to read them."""
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
    said = found.get("ctx", {})
    own = said.get("fix") or FORMS.get(said.get("pattern", ""))
    return str(own) if own else _FIXES.get(found["type"], "see its shape in /openapi.json")
