"""The files that pages load. Their address has a hash of all of them, so browsers may keep them for long."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from duly.i18n import LANGUAGES, messages

_FOR_LONG = "public, max-age=31536000, immutable"
_KINDS = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class Static(NamedTuple):
    """All of them by name, and the version that they are together."""

    version: str
    files: dict[str, bytes]

    @property
    def place(self) -> str:
        """Where they are, behind the prefix of the service."""
        return f"/static/{self.version}"


@cache
def static() -> Static:
    """The files of this package, and the texts of each language as a module."""
    found = resources.files(__package__).joinpath("static")
    files = {file.name: file.read_bytes() for file in found.iterdir() if kind(file.name)}
    files |= {f"texts.{language}.js": _module(language) for language in LANGUAGES}
    return Static(version_of(files), files)


def version_of(files: Mapping[str, bytes]) -> str:
    """What tells these files from others."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
    return digest.hexdigest()[:16]


def served(files: Mapping[str, bytes], name: str, *, kept: bool) -> Response:
    """A file that a page loads; browsers keep it for long if they may."""
    found = files.get(name)
    if found is None:
        raise HTTPException(404, "no such file")
    headers = {"cache-control": _FOR_LONG if kept else "no-store", "content-type": kind(name) or ""}
    return Response(found, headers=headers)


def kind(name: str) -> str | None:
    """The media type of a file by its name; None if we have no such files."""
    return _KINDS.get(name.rpartition(".")[2])


def _module(language: str) -> bytes:
    said = json.dumps(dict(messages(language)), ensure_ascii=False, indent=0)
    return f"export default {said};\n".encode()
