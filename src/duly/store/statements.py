"""Statements are files: `sql/<noun>/<verb>.sql`, one statement each, with a header that says why."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Self


class Statement(str):
    """A text of SQL that knows its name: whoever watches is told that, never the text."""

    name: str

    def __new__(cls, text: str, name: str) -> Self:
        """A text under a name."""
        made = super().__new__(cls, text)
        made.name = name
        return made


@cache
def statement(name: str) -> Statement:
    """The text of `<noun>/<verb>`, without its header."""
    path = resources.files("duly.store").joinpath("sql", f"{name}.sql")
    lines = path.read_text(encoding="utf-8").splitlines()
    body = [line for line in lines if not line.lstrip().startswith("--")]
    return Statement("\n".join(body).strip(), name)


def all_statements() -> list[str]:
    """The names of all statements."""
    root = resources.files("duly.store").joinpath("sql")
    return sorted(
        f"{noun.name}/{verb.name.removesuffix('.sql')}"
        for noun in root.iterdir()
        if noun.is_dir()
        for verb in noun.iterdir()
        if verb.name.endswith(".sql")
    )
