"""What may be asked of an endpoint: kinds of events, job types, secrets."""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Iterable

from duly.core.errors import ContractError
from duly.core.states import EventType
from duly.features.arguments import required_text
from duly.features.system_jobs import is_system_job

EVENT_TYPES = (*(kind.value for kind in EventType), "job.*", "*")
"""What an endpoint can be told of."""
_PREFIX = "whsec_"
_SHORTEST, _LONGEST = 24, 64
_MOST_JOB_TYPES = 100


def checked_event_types(event_types: Iterable[str]) -> list[str]:
    """Some kinds of events, each once."""
    given = _listed("event_types", event_types)
    wrong = [kind for kind in given if kind not in EVENT_TYPES]
    if wrong or not given:
        said = f"{wrong[0]!r} is no kind of event" if wrong else "none is given"
        raise ContractError(said, field="event_types", fix=f"some of {', '.join(EVENT_TYPES)}")
    return [kind for kind in EVENT_TYPES if kind in given]


def checked_job_types(job_types: Iterable[str] | None) -> list[str] | None:
    """Some job types, each once, also those that only other programs know; None for all."""
    given = sorted({required_text("job_types", name) for name in _listed("job_types", job_types)})
    if own := [name for name in given if is_system_job(name)]:
        raise ContractError(
            f"{own[0]!r} is Duly's own; nobody is told of it", field="job_types", fix="name your job types"
        )
    if len(given) > _MOST_JOB_TYPES:
        raise ContractError(
            f"{len(given)} are too many", field="job_types", fix=f"name up to {_MOST_JOB_TYPES}, or none"
        )
    return given or None


def _listed(field: str, values: Iterable[str] | None) -> list[str]:
    if isinstance(values, str):
        raise ContractError("a single text", field=field, fix="pass a list")
    return list(values or ())


def new_secret() -> str:
    """One that nobody has: 256 random bits."""
    return _PREFIX + base64.b64encode(secrets.token_bytes(32)).decode()


def checked_secret(secret: str) -> str:
    """One that was made elsewhere, in the form of Standard Webhooks. What is wrong is said without it."""
    try:
        if not secret.startswith(_PREFIX):
            raise ValueError(_PREFIX)
        size = len(base64.b64decode(secret.removeprefix(_PREFIX), validate=True))
    except (ValueError, AttributeError, binascii.Error):
        size = 0
    if not _SHORTEST <= size <= _LONGEST:
        raise ContractError(
            "not a secret of Standard Webhooks",
            field="secret",
            fix=f"pass {_PREFIX} and the base64 of {_SHORTEST} to {_LONGEST} random bytes, or nothing",
        ) from None
    return secret
