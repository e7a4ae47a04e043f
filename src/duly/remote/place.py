"""Where the service is, and the key that opens it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Self

import httpx

from duly.model.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Place:
    """An address and a key. The key is shown nowhere."""

    url: str
    key: str = field(repr=False)

    @classmethod
    def of(cls, url: str | None, key: str | None) -> Self:
        """What is given, else what the environment says; wrong values are named, but never shown."""
        found = url or os.environ.get("DULY_API_URL", "")
        secret = key or os.environ.get("DULY_API_KEY", "")
        if not found:
            raise ConfigurationError("missing", field="base_url", fix="pass it, or set DULY_API_URL")
        if not secret:
            raise ConfigurationError("missing", field="key", fix="pass it, or set DULY_API_KEY")
        if not _is_address(found):
            raise ConfigurationError(
                "not an address", field="base_url", fix="write https://host, without a user and a query"
            )
        if not (secret.isascii() and secret.isprintable()) or " " in secret:
            raise ConfigurationError("not a key", field="key", fix="pass the text of the key alone")
        return cls(found.rstrip("/"), secret)

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries."""
        return {"authorization": f"Bearer {self.key}", "accept": "application/json, application/problem+json"}


def _is_address(text: str) -> bool:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return False
    return url.scheme in ("http", "https") and bool(url.host) and not url.userinfo and not url.query
