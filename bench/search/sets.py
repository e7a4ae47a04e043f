"""Questions, each with the passage that answers it."""

from __future__ import annotations

import ast
import json
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SHORTEST, _LONGEST = 200, 1_500
_FEWEST_WORDS = 4
_LEFT_OUT = frozenset({"test", "tests", "idlelib", "lib2to3", "site-packages", "turtledemo", "pydoc_data"})


@dataclass(frozen=True, slots=True)
class Questions:
    """A set: passages, and questions with the number of the one passage that is right."""

    passages: tuple[str, ...]
    queries: tuple[tuple[str, int], ...]


def german(path: Path) -> Questions:
    """Read a file like XQuAD: passages with an id and a text, questions with a passage_id."""
    data = json.loads(path.read_text(encoding="utf-8"))
    positions = {passage["id"]: position for position, passage in enumerate(data["passages"])}
    return Questions(
        tuple(passage["text"] for passage in data["passages"]),
        tuple((question["question"], positions[question["passage_id"]]) for question in data["questions"]),
    )


def english() -> Questions:
    """Derive questions from the standard library: the first line of a docstring asks for the rest of it."""
    found: dict[str, str] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if not _LEFT_OUT.intersection(path.parts):
            found.update({rest: title for title, rest in _docstrings(path) if rest not in found})
    titles = list(found.values())
    once = [(rest, title) for rest, title in found.items() if titles.count(title) == 1]
    return Questions(
        tuple(rest for rest, _ in once), tuple((title, position) for position, (_, title) in enumerate(once))
    )


def _docstrings(path: Path) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, UnicodeDecodeError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            title, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
            title, rest = " ".join(title.split()), rest.strip()
            if (
                len(title.split()) >= _FEWEST_WORDS
                and len(title) <= 300
                and _SHORTEST <= len(rest) <= _LONGEST
            ):
                yield title, rest
