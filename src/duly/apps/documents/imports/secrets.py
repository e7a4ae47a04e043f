"""Secrets by reference: rows, payloads and logs contain the reference of a secret, never its value.

A reference belongs to the org that uses it: `file:dropbox` is a file in the org's own directory,
`env:DROPBOX` a variable with the org's id in its name. No org can refer to the secret of another one.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from uuid import UUID, uuid4

from duly.core.errors import ConfigurationError, ContractError, NotFound

PREFIX = "DULY_SECRET_"
"""The prefix of variables; the org's id in upper case without dashes follows, then the name."""
_REF = re.compile(
    r"(?P<kind>env):(?P<variable>[A-Z][A-Z0-9_]{0,63})|file:(?P<file>[a-z0-9][a-z0-9_.-]{0,63})"
)
_MAX_SIZE = 64 * 1024


class UnknownSecret(NotFound):
    """The org has no secret of that name."""

    code = "secret.unknown"


class ReadOnlySecret(ConfigurationError):
    """The secret cannot be written."""

    code = "secret.read_only"


class Secrets(Protocol):
    """The secrets of one org."""

    async def get(self, ref: str) -> str:
        """Return the secret; raise UnknownSecret if it does not exist."""

    async def put(self, ref: str, value: str) -> None:
        """Replace the secret; raise ReadOnlySecret where that is not possible."""


class SecretStore:
    """The operator's secrets: variables of the process, and files in a directory if one is set.

    Workers on several machines share the directory, or else each refreshes its own tokens.
    """

    def __init__(
        self, directory: Path | str | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._directory = None if directory is None else Path(directory)
        self._environment = os.environ if environment is None else environment

    def __repr__(self) -> str:
        return f"<SecretStore {self._directory or 'env'}>"

    def of(self, org_id: UUID) -> Secrets:
        """Return the secrets of an org."""
        folder = None if self._directory is None else self._directory / str(UUID(str(org_id)))
        return _OrgSecrets(f"{PREFIX}{org_id.hex.upper()}_", self._environment, folder)


class _OrgSecrets:
    def __init__(self, prefix: str, environment: Mapping[str, str], folder: Path | None) -> None:
        self._prefix = prefix
        self._environment = environment
        self._folder = folder

    async def get(self, ref: str) -> str:
        parts = _parse_ref(ref)
        if parts["variable"] is not None:
            value = self._environment.get(self._prefix + parts["variable"])
        else:
            value = await asyncio.to_thread(self._read, parts["file"])
        if not value or not value.strip():
            raise UnknownSecret(
                f"{ref} does not exist", field="secret_ref", fix="ask the operator to create it"
            )
        return value.strip()

    async def put(self, ref: str, value: str) -> None:
        parts = _parse_ref(ref)
        if parts["variable"] is not None or self._folder is None:
            raise ReadOnlySecret(f"{ref} cannot be written", field="secret_ref", fix="use a file: secret")
        if not value.strip() or len(value.encode()) > _MAX_SIZE:
            raise ContractError("empty, or too long", field="secret", fix="pass 1 byte to 64 KiB")
        await asyncio.to_thread(_write, self._folder, parts["file"], value)

    def _read(self, name: str) -> str | None:
        if self._folder is None:
            return None
        with suppress(OSError, UnicodeDecodeError):
            # Not through a link: it could lead to the directory of another org.
            descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(_MAX_SIZE + 1)[:_MAX_SIZE].decode()
        return None


def checked_ref(ref: str) -> str:
    """Return the reference of a secret; raise if it is not one."""
    _parse_ref(ref)
    return ref


def _parse_ref(ref: str) -> dict[str, str]:
    match = _REF.fullmatch(ref)
    if match is None:
        # The value is not repeated: it may be the secret itself.
        raise ContractError(
            "not the reference of a secret",
            field="secret_ref",
            fix="write env:NAME or file:name, not the secret",
        )
    return match.groupdict()


def _write(folder: Path, name: str, value: str) -> None:
    """Write a file atomically and durably, readable by its owner only."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = folder / f".{uuid4()}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(value.encode())
            file.flush()
            os.fsync(descriptor)
        temporary.replace(folder / name)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
