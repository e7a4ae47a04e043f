"""Places in a payload, as people name them: `region`, `items.0.sku`; and what may be asked of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from duly.model.errors import ContractError
from duly.model.payload import MAX_DEPTH
from duly.model.redact import hides, redact

MOST = 10
"""How many places may be asked about at a time."""
_LONGEST = 500


class Wanted(NamedTuple):
    """A place, and the plain value that is to be there, as text."""

    path: tuple[str, ...]
    value: str


def wanted(asked: Mapping[str, Any]) -> tuple[Wanted, ...]:
    """What is asked of a payload, checked.

    What is never shown cannot be asked for either: who may ask often enough would find it out.
    """
    if len(asked) > MOST:
        raise ContractError(f"more than {MOST} places", field="payload", fix="ask for less")
    return tuple(Wanted(read(path), _text(path, value)) for path, value in sorted(asked.items()))


def read(path: str) -> tuple[str, ...]:
    """The steps to a place: names of objects, and numbers in lists."""
    steps = tuple(path.split("."))
    if not all(steps) or len(steps) > MAX_DEPTH or len(path) > _LONGEST or not path.isprintable():
        raise ContractError(
            f"{path[:40]!r} is no place in a payload", field="payload", fix="write it as items.0.sku"
        )
    hidden = next((step for step in steps if hides(step) or redact(step) != step), None)
    if hidden is not None:
        raise ContractError(
            f"what stands under {hidden!r} is never shown",
            field=f"payload.{path}",
            fix="ask for something that is no secret",
        )
    return steps


def _text(path: str, value: Any) -> str:
    field = f"payload.{path}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if not isinstance(value, str | int | float):
        raise ContractError("not a plain value", field=field, fix="use a text or a number")
    text = str(value)
    if len(text) > _LONGEST or "\0" in text:
        raise ContractError("too long, or not a text", field=field, fix=f"use up to {_LONGEST} characters")
    if redact(text) != text:
        raise ContractError(
            "this looks like a credential or personal data, which is never shown",
            field=field,
            fix="ask for something else",
        )
    return text
