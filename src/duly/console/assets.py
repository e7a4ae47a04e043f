"""The modules and styles of the console, under an address that changes with them: browsers keep them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import NamedTuple

from duly.pages.static_files import kind, version_of


class Assets(NamedTuple):
    """All of them by name, and the version that they are together."""

    version: str
    files: dict[str, bytes]

    @classmethod
    def gathered(cls, more: Path | None) -> Assets:
        """Those of this package, and more."""
        places = [resources.files("duly.console").joinpath("static"), *([more] if more else [])]
        files = {
            file.name: file.read_bytes() for place in places for file in place.iterdir() if kind(file.name)
        }
        return cls(version_of(files), files)

    @property
    def place(self) -> str:
        """Where they are, behind the prefix of the console."""
        return f"/static/{self.version}"
