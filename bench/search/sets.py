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
    asked: tuple[tuple[str, int], ...]


def german(path: Path) -> Questions:
    """A file like that of XQuAD: passages with an id and a text, questions with a passage_id."""
    said = json.loads(path.read_text(encoding="utf-8"))
    places = {passage["id"]: place for place, passage in enumerate(said["passages"])}
    return Questions(
        tuple(passage["text"] for passage in said["passages"]),
        tuple((question["question"], places[question["passage_id"]]) for question in said["questions"]),
    )


def english() -> Questions:
    """What the standard library says of itself: the first line of a docstring asks for the rest of it."""
    found: dict[str, str] = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if not _LEFT_OUT.intersection(path.parts):
            found.update({rest: title for title, rest in _docstrings(path) if rest not in found})
    titles = list(found.values())
    once = [(rest, title) for rest, title in found.items() if titles.count(title) == 1]
    return Questions(
        tuple(rest for rest, _ in once), tuple((title, place) for place, (_, title) in enumerate(once))
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
