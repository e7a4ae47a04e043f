"""Secrets by reference: rows, payloads and logs carry what a secret is called, and nothing else.

A reference is always the org's own. `file:dropbox` is a file below the folder of the org that asks,
`env:DROPBOX` a variable that has the org's id in its name: nobody can write down the secret of somebody else.
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
"""What a variable begins with; then come the org's id without dashes, in capitals, and the name."""
_REF = re.compile(
    r"(?P<kind>env):(?P<variable>[A-Z][A-Z0-9_]{0,63})|file:(?P<file>[a-z0-9][a-z0-9_.-]{0,63})"
)
_LARGEST = 64 * 1024


class UnknownSecret(NotFound):
    """The org has no secret of that name."""

    code = "secret.unknown"


class ReadOnlySecret(ConfigurationError):
    """A secret that cannot be written from here."""

    code = "secret.read_only"


class Secrets(Protocol):
    """The secrets of one org."""

    async def get(self, ref: str) -> str:
        """The secret; raises UnknownSecret."""

    async def put(self, ref: str, value: str) -> None:
        """Keep another in its place; raises ReadOnlySecret where that cannot be."""


class SecretStore:
    """Where the operator keeps secrets: variables of the process, and a directory if they name one.

    Workers on several machines share the directory, or each of them refreshes its own tokens.
    """

    def __init__(
        self, directory: Path | str | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        self._directory = None if directory is None else Path(directory)
        self._environment = os.environ if environment is None else environment

    def __repr__(self) -> str:
        return f"<SecretStore {self._directory or 'env'}>"

    def of(self, org_id: UUID) -> Secrets:
        """Those of an org, and of no other."""
        folder = None if self._directory is None else self._directory / str(UUID(str(org_id)))
        return _OrgSecrets(f"{PREFIX}{org_id.hex.upper()}_", self._environment, folder)


class _OrgSecrets:
    def __init__(self, prefix: str, environment: Mapping[str, str], folder: Path | None) -> None:
        self._prefix = prefix
        self._environment = environment
        self._folder = folder

    async def get(self, ref: str) -> str:
        parts = _parts(ref)
        if parts["variable"] is not None:
            found = self._environment.get(self._prefix + parts["variable"])
        else:
            found = await asyncio.to_thread(self._read, parts["file"])
        if not found or not found.strip():
            raise UnknownSecret(f"{ref} is not there", field="secret_ref", fix="ask the operator to keep it")
        return found.strip()

    async def put(self, ref: str, value: str) -> None:
        parts = _parts(ref)
        if parts["variable"] is not None or self._folder is None:
            raise ReadOnlySecret(f"{ref} cannot be written", field="secret_ref", fix="use a file: secret")
        if not value.strip() or len(value.encode()) > _LARGEST:
            raise ContractError("empty, or too long", field="secret", fix="keep to 64 KiB")
        await asyncio.to_thread(_write, self._folder, parts["file"], value)

    def _read(self, name: str) -> str | None:
        if self._folder is None:
            return None
        with suppress(OSError, UnicodeDecodeError):
            # Not through a link: it could lead to the folder of another org.
            descriptor = os.open(self._folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(descriptor, "rb") as file:
                return file.read(_LARGEST + 1)[:_LARGEST].decode()
        return None


def checked_ref(ref: str) -> str:
    """A reference that can be resolved, or an error that says how to write one."""
    _parts(ref)
    return ref


def _parts(ref: str) -> dict[str, str]:
    found = _REF.fullmatch(ref)
    if found is None:
        # Not repeated: what is no reference may be the secret itself.
        raise ContractError(
            "no reference of a secret", field="secret_ref", fix="write env:NAME or file:name, not the secret"
        )
    return found.groupdict()


def _write(folder: Path, name: str, value: str) -> None:
    """All of it or nothing, readable to nobody else."""
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
