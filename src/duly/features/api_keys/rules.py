"""Keys as texts, and what may be asked of one."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from duly.core.errors import ContractError
from duly.core.job import SYSTEM_ORG
from duly.core.principal import Scope
from duly.features.arguments import required_text

_TEXT = re.compile(r"duly_([a-z]{1,20})_([0-9a-f]{20})_([0-9a-f]{48})")
_ENVIRONMENT = re.compile(r"[a-z]{1,20}")
_LONGEST_LIFE = timedelta(days=3653)
_LONGEST_OVERLAP = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class KeyText:
    """The parts of `duly_<environment>_<id>_<secret>`."""

    environment: str
    key_id: str
    secret: str = field(repr=False)

    @classmethod
    def new(cls, environment: str) -> Self:
        """One that nobody has."""
        return cls(environment, secrets.token_hex(10), secrets.token_hex(24))

    @classmethod
    def read(cls, written: str) -> Self | None:
        """The parts of a text; None if it is no key."""
        parts = _TEXT.fullmatch(written)
        return cls(*parts.groups()) if parts else None

    def write(self) -> str:
        """The whole text."""
        return f"duly_{self.environment}_{self.key_id}_{self.secret}"

    @property
    def digest(self) -> bytes:
        """What is kept of the secret. It has 192 random bits: a slow hash would only slow us down."""
        return hashlib.sha256(self.secret.encode()).digest()


def checked_scopes(org_id: UUID, scopes: Iterable[Scope | str]) -> list[str]:
    """Some scopes, each once. `platform` is for the system's org, and there is no other for it."""
    known = [scope.value for scope in Scope if (scope is Scope.PLATFORM) == (org_id == SYSTEM_ORG)]
    given = [str(scope) for scope in scopes]
    wrong = [scope for scope in given if scope not in known]
    if wrong or not given:
        said = f"{wrong[0]!r} is no scope of this org" if wrong else "none is given"
        raise ContractError(said, field="scopes", fix=f"some of {', '.join(known)}")
    return [scope for scope in known if scope in given]


def checked_environment(environment: str) -> str:
    """A word for the middle of the text."""
    if not _ENVIRONMENT.fullmatch(required_text("environment", environment)):
        raise ContractError(
            f"{environment!r} is no environment", field="environment", fix="use lower case, as in live"
        )
    return environment


def check_expiry(expires_at: datetime | None, now: datetime) -> None:
    """Raise unless it is to come, by the database's clock."""
    if expires_at is not None and not now < expires_at <= now + _LONGEST_LIFE:
        raise ContractError(
            f"{expires_at.isoformat()} is past, or further than ten years",
            field="expires_at",
            fix="pass a time to come, or nothing for a key without an end",
        )


def checked_moment(expires_at: datetime | None) -> datetime | None:
    """A time with its zone."""
    if expires_at is not None and expires_at.tzinfo is None:
        raise ContractError("has no zone", field="expires_at", fix="pass a time with its zone")
    return expires_at


def checked_overlap(overlap: timedelta) -> timedelta:
    """How long two keys may count beside each other."""
    if type(overlap) is not timedelta or not timedelta(0) <= overlap <= _LONGEST_OVERLAP:
        raise ContractError(f"{overlap} is out of range", field="overlap", fix="use nothing up to 90 days")
    return overlap
