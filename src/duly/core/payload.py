"""The rules of a payload: bounded JSON without secrets; its canonical form and its paths."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from duly.core.errors import ContractError, PayloadRefused, SecretInPayload
from duly.core.redaction import SECRET_NAME, SECRET_VALUE, is_secret_name, redact

MAX_PAYLOAD_BYTES = 256 * 1024
MAX_PAYLOAD_DEPTH = 32
_MAX_DIGITS = 4300  # more of them are no integer for Python's parser
_MAX_INTEGER = 10**_MAX_DIGITS

_FIX = "store it in your secret store and pass its name as `secret_ref`"


def parse_payload(text: str | bytes) -> Any:
    """Parse JSON strictly: no NaN, no infinity, no duplicate keys."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise PayloadRefused(
            f"nested deeper than {MAX_PAYLOAD_DEPTH}", field="payload", fix="flatten it"
        ) from None
    except ValueError as error:  # also bytes that are no UTF-8, and integers of thousands of digits
        raise PayloadRefused(f"not JSON: {error}", field="payload", fix="send a JSON object") from None


def check_payload(payload: Any, size: int, field: str = "payload") -> None:
    """Refuse a payload that is too large, too deep, not storable, or likely to contain a secret."""
    if size > MAX_PAYLOAD_BYTES:
        raise PayloadRefused(
            f"{size} bytes, {MAX_PAYLOAD_BYTES} allowed",
            field=field,
            fix="store it as a blob and pass its reference",
        )
    if not (type(payload) is dict and all(map(_is_plain, payload, payload.values()))):
        _check_tree(_Node(payload, field))


class _Node(NamedTuple):
    """One value of a payload. Its path is built only on refusal: one per value could fill the memory."""

    value: Any
    step: str | int
    depth: int = 0
    above: _Node | None = None

    @property
    def path(self) -> str:
        if self.above is None:
            return str(self.step)
        step = f"[{self.step}]" if isinstance(self.step, int) else f".{self.step}"
        return self.above.path + step


def _check_tree(root: _Node) -> None:
    """Check every value, without recursion."""
    stack = [root]
    _check_value(root)
    while stack:
        outer = stack.pop()
        steps: Iterable[tuple[str | int, Any]] = ()
        if isinstance(outer.value, dict):
            steps = outer.value.items()
        elif isinstance(outer.value, list | tuple):
            steps = enumerate(outer.value)
        for step, value in steps:
            if _is_plain(step, value) and outer.depth < MAX_PAYLOAD_DEPTH:
                continue
            node = _Node(value, step, outer.depth + 1, outer)
            if node.depth > MAX_PAYLOAD_DEPTH:
                raise PayloadRefused(
                    f"nested deeper than {MAX_PAYLOAD_DEPTH}", field=node.path, fix="flatten it"
                )
            _check_name(node)
            _check_value(node)
            if isinstance(value, dict | list | tuple):
                stack.append(node)


def _is_plain(step: str | int, value: Any) -> bool:
    """Return whether a value needs no closer look: most are numbers, or texts without anything to refuse."""
    name = step if isinstance(step, str) else ""
    if "\0" in name or not name.isascii():
        return False
    if isinstance(value, str):
        refused = "\0" in value or SECRET_VALUE.search(value) or SECRET_NAME.search(name)
        return value.isascii() and not refused
    if isinstance(value, int):
        return bool(-_MAX_INTEGER < value < _MAX_INTEGER)
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None


def _check_name(node: _Node) -> None:
    name, value = node.step, node.value
    if isinstance(name, int):
        return
    _check_text(node, name)
    if isinstance(value, str) and value and SECRET_NAME.search(name):
        raise SecretInPayload("the name is that of a secret", field=node.path, fix=_FIX)


def _check_value(node: _Node) -> None:
    value = node.value
    if isinstance(value, int) and not -_MAX_INTEGER < value < _MAX_INTEGER:
        raise PayloadRefused(
            f"more than {_MAX_DIGITS} digits cannot be read again", field=node.path, fix="send it as text"
        )
    if isinstance(value, float) and not math.isfinite(value):
        raise PayloadRefused(f"{value} is not JSON", field=node.path, fix="send null or a finite number")
    if isinstance(value, str):
        _check_text(node, value)
        if SECRET_VALUE.search(value):
            raise SecretInPayload("this looks like a credential", field=node.path, fix=_FIX)


def _check_text(node: _Node, text: str) -> None:
    if "\0" in text:
        raise PayloadRefused("contains a NUL character", field=node.path, fix="remove it")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        path = node.path.encode(errors="replace").decode()
        raise PayloadRefused("contains half of a surrogate pair", field=path, fix="remove it") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise PayloadRefused(f"duplicate key {name!r}", field=f"payload.{name}", fix="send it once")
        found[name] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_constant(text)


def _no_constant(name: str) -> NoReturn:
    raise PayloadRefused(f"{name} is not JSON", field="payload", fix="send null or a finite number")


_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)")


def canonical_json(payload: Any) -> str:
    """Return a text that is equal for payloads which differ only in key order or the zone of instants.

    The database computes the same for payloads that are stored in their row.
    """
    return json.dumps(_stable_order(payload), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _stable_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _stable_order(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_stable_order(inner) for inner in value]
    return _in_utc(value) if isinstance(value, str) and _INSTANT.fullmatch(value) else value


def _in_utc(text: str) -> str:
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="microseconds")
    except (ValueError, OverflowError):
        return text  # only looks like an instant


MAX_PAYLOAD_CONDITIONS = 10
"""The number of conditions that one filter may contain."""
_MAX_CONDITION_LENGTH = 500


class PayloadCondition(NamedTuple):
    """A path in a payload, and the plain value that it must have, as text."""

    path: tuple[str, ...]
    value: str


def payload_conditions(conditions: Mapping[str, Any]) -> tuple[PayloadCondition, ...]:
    """Check and parse the conditions of a filter: plain values by their path, such as `items.0.sku`.

    Redacted values cannot be filtered by: repeated queries would reveal them.
    """
    if len(conditions) > MAX_PAYLOAD_CONDITIONS:
        raise ContractError(
            f"{len(conditions)} paths, at most {MAX_PAYLOAD_CONDITIONS} allowed",
            field="payload",
            fix="filter by fewer paths",
        )
    return tuple(
        PayloadCondition(parse_payload_path(path), _condition_text(path, value))
        for path, value in sorted(conditions.items())
    )


def parse_payload_path(path: str) -> tuple[str, ...]:
    """Return the steps of a path: keys of objects and indexes of lists."""
    steps = tuple(path.split("."))
    if (
        not all(steps)
        or len(steps) > MAX_PAYLOAD_DEPTH
        or len(path) > _MAX_CONDITION_LENGTH
        or not path.isprintable()
    ):
        raise ContractError(
            f"{path[:40]!r} is not a path in a payload", field="payload", fix="write it as items.0.sku"
        )
    hidden = next((step for step in steps if is_secret_name(step) or redact(step) != step), None)
    if hidden is not None:
        raise ContractError(
            f"values under {hidden!r} are redacted and cannot be filtered by",
            field=f"payload.{path}",
            fix="use a path without secrets",
        )
    return steps


def _condition_text(path: str, value: Any) -> str:
    field = f"payload.{path}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str | int | float):
        raise ContractError("not a plain value", field=field, fix="use a text or a number")
    text = str(value)
    if len(text) > _MAX_CONDITION_LENGTH or "\0" in text:
        raise ContractError(
            "too long, or not a text", field=field, fix=f"use up to {_MAX_CONDITION_LENGTH} characters"
        )
    if redact(text) != text:
        raise ContractError(
            "this looks like a credential or personal data, which cannot be filtered by",
            field=field,
            fix="use another value",
        )
    return text
