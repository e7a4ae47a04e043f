"""The stable text of a payload: sorted keys, instants in UTC. The database does the same for small ones."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import Any

_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)")


def canonical(payload: Any) -> str:
    """Equal for payloads that differ only in the order of keys or in how they write an instant."""
    return json.dumps(_stable(payload), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_stable(inner) for inner in value]
    return _in_utc(value) if isinstance(value, str) and _INSTANT.fullmatch(value) else value


def _in_utc(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        return text  # only looks like an instant
