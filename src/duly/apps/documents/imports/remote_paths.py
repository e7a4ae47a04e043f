"""Names and paths of remote files, which may contain anything."""

from __future__ import annotations

from duly.apps.documents.library.filing import shortened_name
from duly.core.errors import ContractError
from duly.core.redaction import printable

_MAX_ID_LENGTH = 255
_MAX_PATH_LENGTH = 2_000
_UNNAMED = "unnamed"


def display_name(name: str) -> str:
    """Return the last part of a path, printable and of limited length; never empty."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    plain = "".join(letter if letter.isprintable() else "_" for letter in last).strip()
    return shortened_name(plain) if plain.strip(".") else _UNNAMED


def printable_path(path: str) -> str:
    """Return a path as it is stored: only to be read and compared."""
    return printable(path).encode(errors="replace").decode()[:_MAX_PATH_LENGTH]


def parse_folder(path: str) -> str:
    """Return a remote folder in a request: empty for the root, `/a/b`, or `id:<id>`."""
    if path.startswith("id:"):
        return _parse_id(path, "remote_path")
    return "".join(f"/{part}" for part in _parse_path(path, "remote_path"))


def parse_file(name: str) -> str:
    """Return a remote file in a request: `a/b.pdf` below the folder, or `id:<id>`."""
    if name.startswith("id:"):
        return _parse_id(name, "files")
    parts = _parse_path(name, "files")
    if not parts:
        raise ContractError("empty", field="files", fix="name files, or leave it out for all")
    return "/".join(parts)


def _parse_id(text: str, field: str) -> str:
    remote_id = text.removeprefix("id:")
    is_valid = all(c.isascii() and (c.isalnum() or c in "_-!.") for c in remote_id)
    if not remote_id or len(remote_id) > _MAX_ID_LENGTH or not is_valid:
        raise ContractError("not the id of a file", field=field, fix="copy it from the provider")
    return f"id:{remote_id}"


def _parse_path(path: str, field: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    if len(path) > _MAX_PATH_LENGTH or any(part in (".", "..") or printable(part) != part for part in parts):
        raise ContractError("not a path", field=field, fix="write names with slashes between them")
    return parts
