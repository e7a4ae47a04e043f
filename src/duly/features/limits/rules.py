"""What a limit may be, and what it becomes when only a part of it is changed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final, Literal

from duly.core.errors import ContractError
from duly.features.limits.store import EVERY_ORG, EVERY_TYPE, GateKey, Limit
from duly.jobs.request_context import checked_text

LIMITS = ("max_running", "starts_per_second", "burst", "max_waiting")
_MOST = 1_000_000
_FASTEST = 10_000.0
_SLOWEST = 0.0001
_TYPE = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class _Left(Enum):
    UNCHANGED = "unchanged"


Unchanged = Literal[_Left.UNCHANGED]
UNCHANGED: Final = _Left.UNCHANGED
"""What is left out stays as it is; None is no limit."""


def check_type_name(job_type: str | None) -> str | None:
    """A name that a job type can have; it need not be declared here."""
    name = checked_text("job_type", job_type)
    if name is not None and not _TYPE.fullmatch(name):
        raise ContractError(f"{name!r} is no job type", field="job_type", fix="use lower_case.words")
    return name


def checked(key: GateKey, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values that were given, or an error that names the wrong one."""
    if not given:
        raise ContractError("nothing to set", field="max_running", fix=f"pass one of {', '.join(LIMITS)}")
    for field, value in given.items():
        if value is not None:
            _check(field, value)
    if given.get("max_waiting") is not None and (key.org_id == EVERY_ORG or key.job_type != EVERY_TYPE):
        raise ContractError(
            "waiting jobs are counted by org",
            field="max_waiting",
            fix="set it for an org, without a job type",
        )
    return dict(given)


def merged(now: Limit, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What changes; nothing if everything is so already. A rate always has a burst."""
    values = {**{name: getattr(now, name) for name in LIMITS}, **wanted}
    rate = values["starts_per_second"]
    if rate is None and wanted.get("burst") is not None:
        raise ContractError(
            "there is no rate it belongs to", field="burst", fix="set starts_per_second with it"
        )
    if rate is None:
        values["burst"] = None
    elif values["burst"] is None:
        values["burst"] = max(1, math.ceil(rate))
    return {name: value for name, value in values.items() if value != getattr(now, name)}


def _check(field: str, value: Any) -> None:
    if field == "starts_per_second":
        good = type(value) in (int, float) and _SLOWEST <= value <= _FASTEST
        fix = f"use {_SLOWEST} to {_FASTEST:.0f}, or none for no limit"
    else:
        least = 1 if field == "burst" else 0
        good = type(value) is int and least <= value <= _MOST
        fix = f"use {least} to {_MOST}, or none for no limit"
    if not good:
        raise ContractError(f"{value!r} is out of range", field=field, fix=fix)
