"""What a job was given, as it may be shown; and what somebody made of it, with what was hidden put back.

Whoever edits what is shown never sees what is hidden: what they leave as it is keeps its stored value.
"""

from __future__ import annotations

import json
from typing import Any

from duly.model.errors import ContractError
from duly.model.redact import LONGEST, SECRET_NAME, redact

MASK = "[redacted]"
_PLACEHOLDERS = (MASK, "[email]", "[number]")


def veiled(stored: Any) -> Any:
    """The value without credentials and personal data; texts are cut to a length."""
    if isinstance(stored, dict):
        return {key: _named(name, stored[name]) for key, name in _keys(stored).items()}
    if isinstance(stored, list):
        return [veiled(item) for item in stored]
    return redact(stored, LONGEST) if isinstance(stored, str) else stored


def restored(typed: Any, stored: Any, path: str = "payload") -> Any:
    """What was typed, with the stored values where it is as it was shown.

    A placeholder that stands elsewhere raises: nobody knows what it stands for.
    """
    if _same(typed, veiled(stored)):
        return stored
    if isinstance(typed, dict) and isinstance(stored, dict):
        return _fields(typed, stored, path)
    if isinstance(typed, list) and isinstance(stored, list):
        return _items(typed, stored, path)
    return _checked(typed, path)


def _fields(typed: dict[str, Any], stored: dict[str, Any], path: str) -> dict[str, Any]:
    known = _keys(stored)
    found: dict[str, Any] = {}
    for key, value in typed.items():
        here = f"{path}.{key}"
        if key not in known:
            found[_checked(key, here)] = _checked(value, here)
        elif _same(value, _named(known[key], stored[known[key]])):
            found[known[key]] = stored[known[key]]
        else:
            found[known[key]] = restored(value, stored[known[key]], here)
    return found


def _items(typed: list[Any], stored: list[Any], path: str) -> list[Any]:
    """Item by item; where some were added or removed, those that look like one that was there."""
    if len(typed) == len(stored):
        return [
            restored(one, was, f"{path}.{n}") for n, (one, was) in enumerate(zip(typed, stored, strict=True))
        ]
    left = list(stored)
    found: list[Any] = []
    for n, item in enumerate(typed):
        was = next((one for one in left if _same(item, veiled(one))), None)
        if was is None:
            found.append(_checked(item, f"{path}.{n}"))
        else:
            left.remove(was)
            found.append(was)
    return found


def _named(name: str, value: Any) -> Any:
    return MASK if value not in (None, "") and SECRET_NAME.search(name) else veiled(value)


def _keys(stored: dict[str, Any]) -> dict[str, str]:
    """The names by how they are shown; two that would be shown alike are told apart by a number."""
    found: dict[str, str] = {}
    for name in stored:
        shown = redact(name, LONGEST)
        found[shown if shown not in found else f"{shown} {len(found)}"] = name
    return found


def _checked(typed: Any, path: str) -> Any:
    text = json.dumps(typed, ensure_ascii=False)
    if any(placeholder in text for placeholder in _PLACEHOLDERS):
        raise ContractError(
            "a placeholder stands here, and nobody knows for what", field=path, fix="write the value itself"
        )
    return typed


def _same(one: Any, other: Any) -> bool:
    """The same JSON: true is not 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
