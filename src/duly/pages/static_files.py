"""Scripts, styles and images of the pages, cached by browsers: their URL contains a hash of all files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from duly.i18n import LANGUAGES, messages

_IMMUTABLE = "public, max-age=31536000, immutable"
_MEDIA_TYPES = {
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class StaticFiles(NamedTuple):
    """Files by name, and the hash of all of them."""

    version: str
    files: Mapping[str, bytes]

    @classmethod
    def read(cls, *folders: Traversable, generated: Mapping[str, bytes] | None = None) -> StaticFiles:
        """Read the files of folders; files of later folders and generated ones replace earlier ones."""
        files = {
            file.name: file.read_bytes()
            for folder in folders
            for file in folder.iterdir()
            if media_type(file.name)
        }
        files |= generated or {}
        digest = hashlib.sha256()
        for name in sorted(files):
            digest.update(name.encode() + b"\0" + hashlib.sha256(files[name]).digest())
        return cls(digest.hexdigest()[:16], files)

    @property
    def path(self) -> str:
        """The path of the files below that of the service or the console."""
        return f"/static/{self.version}"

    def response(self, version: str, name: str) -> Response:
        """Return a file; only the current version may be cached."""
        content = self.files.get(name)
        if content is None:
            raise HTTPException(404, "file not found")
        caching = _IMMUTABLE if version == self.version else "no-store"
        return Response(content, headers={"cache-control": caching, "content-type": media_type(name) or ""})


@cache
def static() -> StaticFiles:
    """Return the files of the customer pages, with the texts of each language as a module."""
    texts = {f"texts.{language}.js": _texts_module(language) for language in LANGUAGES}
    return StaticFiles.read(resources.files(__package__).joinpath("static"), generated=texts)


def media_type(name: str) -> str | None:
    """Return the media type of a file by its name; None if it is not a static file."""
    return _MEDIA_TYPES.get(name.rpartition(".")[2])


def _texts_module(language: str) -> bytes:
    texts = json.dumps(dict(messages(language)), ensure_ascii=False, indent=0)
    return f"export default {texts};\n".encode()
