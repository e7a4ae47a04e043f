"""Database schemas of applications, and the files with their SQL statements.

The statement `webhooks/create` is one of

- `webhooks/queries/create.sql`, where the noun is the name of the package,
- `<package>/queries/webhooks/create.sql`, where a package has statements of several nouns,
- the part below `-- name: create` in `<package>/queries/webhooks.sql`, where short statements share a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Schema:
    """A schema of the database, and the package whose folder `migrations` creates it.

    The first migration creates the schema and its table `schema_versions`, as in `duly.apps.documents`.
    """

    name: str
    package: str


def read_statements(queries: Path) -> dict[str, str]:
    """Return the statements of a `queries` folder with their comments, by name."""
    found: dict[str, str] = {}
    for path in sorted(queries.rglob("*.sql")):
        for name, text in _statements(queries, path):
            if name in found:
                raise ValueError(f"statement {name} is defined twice, the second time in {path}")
            found[name] = text
    return found


def without_comments(text: str) -> str:
    """Return a statement without its header and its other comment lines."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--")).strip()


def _statements(queries: Path, path: Path) -> list[tuple[str, str]]:
    text = path.read_text(encoding="utf-8")
    if named := _NAME.split(text)[1:]:
        return [
            (f"{path.stem}/{verb}", body.strip()) for verb, body in zip(named[::2], named[1::2], strict=True)
        ]
    noun = queries.parent.name if path.parent == queries else path.parent.name
    return [(f"{noun}/{path.stem}", text)]
