"""The source as the rules of the architecture see it: files, names and docstrings."""

from __future__ import annotations

import ast
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "duly"
BANNED = frozenset(
    {"asked", "bygone", "desk", "everywhere", "glance", "glances", "ground", "kept", "most", "patience"}
    | {"place", "places", "said", "seen", "shown", "told", "veil", "wanted", "watched", "workshop"}
)
"""Words that name nothing an engineer would look for."""
PRIVATE_STYLE = re.compile(r"\b(whoever|somebody|nobody|anybody|who asks|is told)\b", re.IGNORECASE)


@cache
def files() -> list[Path]:
    """Return the files of the package that belong to the project."""
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", str(PACKAGE)]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return sorted(ROOT / name for name in listed if name and (ROOT / name).exists())


@cache
def modules() -> dict[str, ast.Module]:
    """Return the parsed Python files by their path below the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in files()
        if path.suffix == ".py"
    }


def folder_sizes() -> dict[str, int]:
    """Return the number of files per folder; statements, migrations, catalogues and assets are data."""
    counts: dict[str, int] = defaultdict(int)
    for path in files():
        folder = path.parent.relative_to(PACKAGE)
        if not {"queries", "migrations", "locale", "static"} & set(folder.parts):
            counts[folder.as_posix()] += 1
    return counts


def classes() -> dict[str, list[str]]:
    """Return the modules that define each class name."""
    found: dict[str, list[str]] = defaultdict(list)
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name].append(name)
    return found


def identifiers(tree: ast.Module) -> Iterator[str]:
    """Yield every name that a module defines: functions, classes, arguments, variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.asname


def banned_names() -> set[str]:
    """Return the names that contain a banned word, with their module."""
    found = set()
    for module, tree in modules().items():
        for name in (Path(module).stem, *identifiers(tree)):
            words = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower().split("_")
            if BANNED & set(words):
                found.add(f"{module}: {name}")
    return found


def private_style() -> set[str]:
    """Return the texts that speak of whoever, somebody and nobody: docstrings, messages and labels."""
    return {
        f"{module}: {node.value.strip().splitlines()[0][:90]}"
        for module, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and PRIVATE_STYLE.search(node.value)
    }


def untyped_keywords() -> set[str]:
    """Return the public functions that accept any keyword argument of any type, with their module."""
    found = set()
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.args.kwarg:
                annotation = node.args.kwarg.annotation
                untyped = annotation is None or ast.unparse(annotation) in {"Any", "object"}
                if untyped and not node.name.startswith("_"):
                    found.add(f"{module}: {node.name}")
    return found
