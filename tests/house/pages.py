"""The parts of the documentation that are made from the code: `python -m tests.house.pages` writes them."""

from __future__ import annotations

import re
from pathlib import Path

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


PAGES = {
    "docs/concepts/states.md": {"states": states},
    "docs/reference/settings.md": {"settings": settings},
    "docs/reference/errors.md": {"errors": tree},
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
