"""The parts of the documentation that are made from the code: `python -m tests.house.pages` writes them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from typer.main import get_command

from duly.cli.exits import MEANINGS
from duly.cli.program import program
from duly.model import errors
from duly.model.diagram import mermaid
from duly.settings import Settings

ROOT = Path(__file__).parents[2]


def states() -> str:
    return f"```mermaid\n{mermaid()}\n```"


def settings() -> str:
    lines = ["| setting | variable | default | meaning |", "|---|---|---|---|"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else f"`{field.default}`"
        lines.append(f"| `{name}` | `DULY_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(lines)


def tree() -> str:
    text = (errors.__doc__ or "").split("\n\n", 1)[1].strip()
    return f"```text\n{text}\n```"


def commands() -> dict[str, Any]:
    """Every command of the program by its words."""
    found: dict[str, Any] = {}
    for name, command in get_command(program).commands.items():  # type: ignore[attr-defined]
        below = getattr(command, "commands", None)
        found |= {f"{name} {word}": one for word, one in below.items()} if below else {name: command}
    return {path: command for path, command in found.items() if not command.hidden}


def cli() -> str:
    lines = ["| command | what it does |", "|---|---|"]
    for path, command in commands().items():
        first = command.help.strip().partition("\n")[0]
        arguments = [p.metavar or p.name.upper() for p in command.params if p.param_type_name == "argument"]
        lines.append(f"| `{' '.join(['duly', path, *arguments])}` | {first} |")
    return "\n".join(lines)


def exits() -> str:
    rows = [f"| {code.value} | {meaning} |" for code, meaning in MEANINGS.items()]
    return "\n".join(["| code | meaning |", "|---|---|", *rows])


PAGES = {
    "docs/concepts/states.md": {"states": states},
    "docs/reference/settings.md": {"settings": settings},
    "docs/reference/errors.md": {"errors": tree},
    "docs/reference/cli.md": {"commands": cli, "exits": exits},
}


def made(page: str) -> str:
    """The page as it should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, make in PAGES[page].items():
        block = re.compile(rf"(<!-- generated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text, found = block.subn(lambda m, make=make: f"{m[1]}{make()}\n{m[2]}", text)
        assert found == 1, f"{page} has no place for {name}"
    return text


if __name__ == "__main__":
    for page in PAGES:
        (ROOT / page).write_text(made(page), encoding="utf-8")
