"""Statements are files: `sql/<noun>/<verb>.sql`, one statement each, with a header that says why."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def statement(name: str) -> str:
    """The text of `<noun>/<verb>`, without its header."""
    path = resources.files("duly.store").joinpath("sql", f"{name}.sql")
    lines = path.read_text(encoding="utf-8").splitlines()
    body = [line for line in lines if not line.lstrip().startswith("--")]
    return "\n".join(body).strip()


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
