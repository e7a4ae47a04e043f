"""The SQL statements of the engine, from the `queries` folders of the packages that use them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Self

from duly.core.schema import read_statements, without_comments

_ROOT = Path(__file__).parents[1]
_APPLICATIONS = "apps"
"""Applications load their own statements."""


class Statement(str):
    """The text of an SQL statement, with the name under which traces show it."""

    name: str

    def __new__(cls, text: str, name: str) -> Self:
        """Return the text as a statement of that name."""
        made = super().__new__(cls, text)
        made.name = name
        return made


@cache
def statement(name: str) -> Statement:
    """Return the statement `<noun>/<verb>`, without its comments."""
    return Statement(without_comments(statement_sources()[name]), name)


def all_statements() -> list[str]:
    """Return the names of all statements of the engine."""
    return sorted(statement_sources())


@cache
def statement_sources() -> dict[str, str]:
    """Return the texts of all statements of the engine with their comments, by name."""
    found: dict[str, str] = {}
    for folder in sorted(_ROOT.glob("**/queries")):
        if folder.relative_to(_ROOT).parts[0] == _APPLICATIONS:
            continue
        statements = read_statements(folder)
        if twice := found.keys() & statements.keys():
            raise ValueError(f"defined twice, the second time in {folder}: {', '.join(sorted(twice))}")
        found |= statements
    return found
