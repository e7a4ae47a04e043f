"""The Jinja environment of all HTML: values are escaped, and a missing one is an error."""

from __future__ import annotations

from jinja2 import BaseLoader, Environment, StrictUndefined


def environment(loader: BaseLoader) -> Environment:
    """Return an environment with the templates of a loader."""
    return Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
