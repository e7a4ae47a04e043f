"""What a payload may be: JSON of bounded size and depth, and nothing secret."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from types import NoneType
from typing import Any, NamedTuple, NoReturn

from duly.model.errors import PayloadRefused, SecretInPayload
from duly.model.redact import SECRET_NAME, SECRET_VALUE

MAX_BYTES = 256 * 1024
MAX_DEPTH = 32

_FIX = "store it in your secret store and pass its name as `secret_ref`"


def parse(text: str | bytes) -> Any:
    """Read JSON as strictly as it is stored: no NaN, no infinity, no duplicate keys."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)
    except RecursionError:
        raise PayloadRefused(f"nested deeper than {MAX_DEPTH}", field="payload", fix="flatten it") from None
    except ValueError as error:  # also bytes that are no UTF-8, and integers of thousands of digits
        raise PayloadRefused(f"not JSON: {error}", field="payload", fix="send a JSON object") from None


def check(payload: Any, size: int, field: str = "payload") -> None:
    """Refuse what is too large, too deep, not storable, or likely to hold a secret."""
    if size > MAX_BYTES:
        raise PayloadRefused(
            f"{size} bytes, {MAX_BYTES} allowed", field=field, fix="store it as a blob and pass its reference"
        )
    _check_inner(_Place(payload, field))


class _Place(NamedTuple):
    """One value of a payload. Its path is spelled only on refusal: a path for each can fill the memory."""

    value: Any
    step: str | int
    depth: int = 0
    above: _Place | None = None

    @property
    def path(self) -> str:
        if self.above is None:
            return str(self.step)
        step = f"[{self.step}]" if isinstance(self.step, int) else f".{self.step}"
        return self.above.path + step


def _check_inner(root: _Place) -> None:
    """Every value, without recursion. What cannot be wrong costs nothing more: payloads are checked often."""
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
            if type(value) in _PLAIN and outer.depth < MAX_DEPTH and _is_plain(step):
                continue
            place = _Place(value, step, outer.depth + 1, outer)
            if place.depth > MAX_DEPTH:
                raise PayloadRefused(f"nested deeper than {MAX_DEPTH}", field=place.path, fix="flatten it")
            _check_name(place)
            _check_value(place)
            if isinstance(value, dict | list | tuple):
                stack.append(place)


_PLAIN = frozenset({int, bool, NoneType})


def _is_plain(step: str | int) -> bool:
    return isinstance(step, int) or (step.isascii() and "\0" not in step)


def _check_name(place: _Place) -> None:
    name, value = place.step, place.value
    if isinstance(name, int):
        return
    _check_text(place, name)
    if isinstance(value, str) and value and SECRET_NAME.search(name):
        raise SecretInPayload("the name says that this is a secret", field=place.path, fix=_FIX)


def _check_value(place: _Place) -> None:
    value = place.value
    if isinstance(value, float) and not math.isfinite(value):
        raise PayloadRefused(f"{value} is not JSON", field=place.path, fix="send null or a finite number")
    if isinstance(value, str):
        _check_text(place, value)
        if SECRET_VALUE.search(value):
            raise SecretInPayload("this looks like a credential", field=place.path, fix=_FIX)


def _check_text(place: _Place, text: str) -> None:
    if "\0" in text:
        raise PayloadRefused("a NUL character", field=place.path, fix="remove it")
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError:
        path = place.path.encode(errors="replace").decode()
        raise PayloadRefused("half of a surrogate pair", field=path, fix="remove it") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise PayloadRefused(
                f"the key {name!r} stands twice", field=f"payload.{name}", fix="send it once"
            )
        found[name] = value
    return found


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_constant(text)


def _no_constant(name: str) -> NoReturn:
    raise PayloadRefused(f"{name} is not JSON", field="payload", fix="send null or a finite number")
