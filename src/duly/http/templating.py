"""How templates become HTML: every value is escaped, and one that is missing is an error."""

from __future__ import annotations

from jinja2 import BaseLoader, Environment, StrictUndefined


def environment(loader: BaseLoader) -> Environment:
    """Templates from there."""
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
