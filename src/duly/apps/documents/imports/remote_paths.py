"""Names and paths from elsewhere, which may be anything."""

from __future__ import annotations

from pathlib import PurePosixPath

from duly.core.errors import ContractError
from duly.core.redaction import printable

_LONGEST = 255
_LONGEST_PATH = 2_000
_UNNAMED = "unnamed"


def shown_name(name: str) -> str:
    """A name to show: no path, nothing that turns or hides text, not too long, with its ending."""
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    plain = "".join(letter if letter.isprintable() else "_" for letter in last).strip()
    if not plain.strip("."):
        return _UNNAMED
    if len(plain) <= _LONGEST:
        return plain
    ending = PurePosixPath(plain).suffix
    ending = ending if len(ending) <= 10 else ""
    return plain[: _LONGEST - len(ending)] + ending


def kept_path(path: str) -> str:
    """A path as it is noted: only to be read and compared."""
    return printable(path).encode(errors="replace").decode()[:_LONGEST_PATH]


def folder(path: str) -> str:
    """A remote folder as it is asked for: `` for all, `/a/b`, or `id:<its id>`."""
    if path.startswith("id:"):
        return f"id:{remote_id(path, 'remote_path')}"
    parts = _parts(path, "remote_path")
    return "".join(f"/{part}" for part in parts)


def file(name: str) -> str:
    """A file as it is asked for: `a/b.pdf` below the folder, or `id:<its id>`."""
    if name.startswith("id:"):
        return f"id:{remote_id(name, 'files')}"
    parts = _parts(name, "files")
    if not parts:
        raise ContractError("empty", field="files", fix="name files, or leave it out for all")
    return "/".join(parts)


def remote_id(text: str, field: str) -> str:
    """The id in `id:...`."""
    found = text.removeprefix("id:")
    if (
        not found
        or len(found) > _LONGEST
        or not all(c.isascii() and (c.isalnum() or c in "_-!.") for c in found)
    ):
        raise ContractError("no id of a file", field=field, fix="copy it from the provider")
    return found


def _parts(path: str, field: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    if len(path) > _LONGEST_PATH or any(part in (".", "..") or printable(part) != part for part in parts):
        raise ContractError("no path", field=field, fix="write names with slashes between them")
    return parts
