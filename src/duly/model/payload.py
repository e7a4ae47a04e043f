"""What a payload may be: JSON of bounded size and depth, and nothing secret."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from duly.model.errors import PayloadRefused, SecretInPayload

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32

_SECRET_NAME = re.compile(
    r"(^|[_\-.])(password|passwd|passphrase|secret|private[_-]?key|api[_-]?key|access[_-]?key"
    r"|(access|auth|bearer|refresh|session|id)[_-]?token|token|credentials?|authorization|client[_-]?secret)$",
    re.IGNORECASE,
)
_SECRET_VALUE = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{36,}\b"
    r"|\bgithub_pat_[A-Za-z0-9_]{22,}\b"
    r"|\bglpat-[A-Za-z0-9_\-]{20,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b[sr]k_live_[A-Za-z0-9]{16,}\b"
    r"|\bAIza[0-9A-Za-z_\-]{35}\b"
    r"|\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}"
    r"|\bduly_[a-z]+_[A-Za-z0-9]{6,}_[A-Za-z0-9]{16,}\b"
)
_FIX = "store it in your secret store and pass its name as `secret_ref`"


def parse(text: str | bytes) -> Any:
    """Read JSON as strictly as it is stored: no NaN, no infinity, no duplicate keys."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise PayloadRefused(f"not JSON: {error}", field="payload", fix="send a JSON object") from None


def check(payload: Any, size: int) -> None:
    """Refuse a payload that is too large, too deep, not storable, or likely to hold a secret."""
    if size > MAX_BYTES:
        raise PayloadRefused(
            f"{size} bytes, {MAX_BYTES} allowed",
            field="payload",
            fix="store it as a blob and pass its reference",
        )
    for path, name, value, depth in _walk(payload):
        if depth > MAX_DEPTH:
            raise PayloadRefused(f"nested deeper than {MAX_DEPTH}", field=path, fix="flatten it")
        _check_name(path, name, value)
        _check_value(path, value)


def _check_name(path: str, name: str, value: Any) -> None:
    if "\0" in name:
        raise PayloadRefused("a NUL character in a key", field=path, fix="remove it")
    if name and isinstance(value, str) and value and _SECRET_NAME.search(name):
        raise SecretInPayload("the name says that this is a secret", field=path, fix=_FIX)


def _check_value(path: str, value: Any) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise PayloadRefused(f"{value} is not JSON", field=path, fix="send null or a finite number")
    if isinstance(value, str):
        if "\0" in value:
            raise PayloadRefused("a NUL character", field=path, fix="remove it")
        if _SECRET_VALUE.search(value):
            raise SecretInPayload("this looks like a credential", field=path, fix=_FIX)


def _walk(payload: Any) -> Iterator[tuple[str, str, Any, int]]:
    """Every value with its path, its key and its depth, without recursion."""
    stack: list[tuple[str, str, Any, int]] = [("payload", "", payload, 0)]
    while stack:
        path, name, value, depth = stack.pop()
        yield path, name, value, depth
        if depth > MAX_DEPTH:
            continue
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}", key, inner, depth + 1) for key, inner in value.items())
        elif isinstance(value, list | tuple):
            stack.extend((f"{path}[{i}]", "", inner, depth + 1) for i, inner in enumerate(value))


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise PayloadRefused(f"the key {twice!r} stands twice", field=f"payload.{twice}", fix="send it once")
    return found


def _no_constant(name: str) -> Any:
    raise PayloadRefused(f"{name} is not JSON", field="payload", fix="send null or a finite number")
