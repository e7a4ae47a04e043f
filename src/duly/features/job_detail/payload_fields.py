"""The fields of a payload, as its JSON schema tells them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Field:
    """One field: what it takes, and whether it must be there."""

    name: str
    kind: str
    required: bool
    hint: str
    default: str
    """What it is if nobody says; empty without one."""


def fields(schema: Mapping[str, Any]) -> list[Field]:
    """The fields of an object, in their order."""
    known, needed = schema.get("$defs", {}), set(schema.get("required", ()))
    return [
        Field(name, _kind(said, known), name in needed, str(said.get("description", "")), _default(said))
        for name, said in schema.get("properties", {}).items()
    ]


def _kind(said: Mapping[str, Any], known: Mapping[str, Any], depth: int = 0) -> str:
    """In a few words: `text`, `list of integer`, `one of a, b`."""
    if "$ref" in said and depth < 5:
        name = str(said["$ref"]).rpartition("/")[2]
        inner = known.get(name, {})
        return _kind(inner, known, depth + 1) if "enum" in inner else name
    if "const" in said:
        return repr(said["const"])
    if "enum" in said:
        return " | ".join(map(repr, said["enum"]))
    if "anyOf" in said and depth < 5:
        return " | ".join(dict.fromkeys(_kind(one, known, depth + 1) for one in said["anyOf"]))
    kind = str(said.get("type", "any"))
    if kind == "array" and depth < 5:
        return f"{_kind(said.get('items', {}), known, depth + 1)}[]"
    return f"{kind} ({said['format']})" if "format" in said else kind


def _default(said: Mapping[str, Any]) -> str:
    return json.dumps(said["default"], ensure_ascii=False) if "default" in said else ""
