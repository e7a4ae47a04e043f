"""Where settings come from: a table of a TOML file, and the environment."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from duly.model.errors import ConfigurationError


def from_file(file: Path | None) -> dict[str, Any]:
    """What the table `[duly]` of the file says."""
    if file is None:
        return {}
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8")).get("duly", {})
    except (OSError, ValueError) as error:  # not there, not UTF-8, not TOML
        raise ConfigurationError(f"{file}: {error}", field="DULY_CONFIG", fix="name a TOML file") from None
    if not isinstance(found, dict):
        raise ConfigurationError(f"{file}: duly is no table", field="DULY_CONFIG", fix="write [duly]")
    return found


def from_environment(fields: Iterable[str], environ: Mapping[str, str]) -> dict[str, str]:
    """What the variables of these fields say."""
    names = {name: f"DULY_{name.upper()}" for name in fields}
    # An empty variable is one that was not set.
    return {name: environ[variable] for name, variable in names.items() if environ.get(variable)}
