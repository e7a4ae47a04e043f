"""Resources of API keys, and the text of a key: its format, its generation and its digest."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict

_KEY_TEXT = re.compile(r"duly_([a-z]{1,20})_([0-9a-f]{20})_([0-9a-f]{48})")


class ApiKey(BaseModel):
    """An API key without its secret."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    org_id: UUID
    key_id: str
    name: str
    environment: str
    scopes: tuple[str, ...]
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    """For a rotated key, the end of its overlap, which may be in the future."""
    last_used_at: datetime | None
    """To the minute."""
    alive: bool
    """Whether it was neither expired nor revoked when it was read. A suspended org rejects it even so."""


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """A new key and its text, which is returned only once and stored nowhere."""

    key: ApiKey
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class ApiKeyPage:
    """A page of keys; `after` is the cursor of the next page, None on the last one."""

    keys: tuple[ApiKey, ...]
    after: str | None


@dataclass(frozen=True, slots=True)
class KeyText:
    """The parts of `duly_<environment>_<id>_<secret>`."""

    environment: str
    key_id: str
    secret: str = field(repr=False)

    @classmethod
    def generate(cls, environment: str) -> Self:
        """Return a new random key."""
        return cls(environment, secrets.token_hex(10), secrets.token_hex(24))

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Return the parts of a text; None if it is not a key."""
        match = _KEY_TEXT.fullmatch(text)
        return cls(*match.groups()) if match else None

    def reveal(self) -> str:
        """Return the whole text, with its secret."""
        return f"duly_{self.environment}_{self.key_id}_{self.secret}"

    @property
    def digest(self) -> bytes:
        """The stored hash of the secret. It has 192 random bits, so a fast hash is safe."""
        return hashlib.sha256(self.secret.encode()).digest()
