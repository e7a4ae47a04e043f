"""SQL statements are files in the `queries` folder of the package that uses them.

The statement `webhooks/create` is one of

- `webhooks/queries/create.sql`, where the noun is the name of the package,
- `<package>/queries/webhooks/create.sql`, where a package has statements of several nouns,
- the part below `-- name: create` in `<package>/queries/webhooks.sql`, where short statements share a file.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Self

_ROOT = Path(__file__).parents[1]
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
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
    lines = statement_sources()[name].splitlines()
    return Statement("\n".join(line for line in lines if not line.lstrip().startswith("--")).strip(), name)


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
        for name, text in _read(folder).items():
            if name in found:
                raise ValueError(f"statement {name} is defined twice, the second time in {folder}")
            found[name] = text
    return found


def _read(folder: Path) -> dict[str, str]:
    """Read the statements of one `queries` folder, by name."""
    found: dict[str, str] = {}
    for path in sorted(folder.rglob("*.sql")):
        text = path.read_text(encoding="utf-8")
        named = _NAME.split(text)[1:]
        if named:
            found |= {
                f"{path.stem}/{verb}": body.strip()
                for verb, body in zip(named[::2], named[1::2], strict=True)
            }
        else:
            noun = folder.parent.name if path.parent == folder else path.parent.name
            found[f"{noun}/{path.stem}"] = text
    return found
