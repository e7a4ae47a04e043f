"""Loading the application that a command works with, and the inputs of a command."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from typing import Any

from duly.app import Duly
from duly.core import payload as rules
from duly.core.errors import ConfigurationError, DulyError, PayloadRefused

_FIX = "use --app module:attribute, or DULY_APP"


def load_app(name: str | None, *, job_types: bool = False) -> Duly:
    """Return the application of that name; without a name, an application without job types."""
    if name is None:
        if job_types:
            raise ConfigurationError("missing: this command needs your job types", field="app", fix=_FIX)
        return Duly()
    module, _, attribute = name.partition(":")
    app = getattr(_imported(module), attribute or "app", None)
    if not isinstance(app, Duly):
        raise ConfigurationError(f"{name} is not a Duly application", field="app", fix=_FIX)
    return app


def _imported(module: str) -> Any:
    # As `python -m` does it: programs are started in the folder that they lie in.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(module)
    except DulyError:
        raise  # it names the cause and the setting itself
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and module.startswith(str(error.name))
        if not missing:
            traceback.print_exc()
        raise ConfigurationError(f"cannot import {module}: {error}", field="app", fix=_FIX) from None


def read_payload(given: str) -> dict[str, Any]:
    """Return a payload that is JSON itself, @file, or - for stdin."""
    value = rules.parse_payload(_read(given, "payload", "name a file with JSON"))
    if not isinstance(value, dict):
        raise PayloadRefused("not an object", field="payload", fix="pass a JSON object")
    return value


def read_text(given: str, field: str) -> str:
    """Return a text that is given itself, as @file, or as - for stdin."""
    fix = "name a file with text in UTF-8"
    try:
        content = _read(given, field, fix)
        return content if isinstance(content, str) else content.decode()
    except UnicodeDecodeError:
        raise PayloadRefused("not UTF-8", field=field, fix=fix) from None


def _read(given: str, field: str, fix: str) -> str | bytes:
    if given == "-":
        return sys.stdin.buffer.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_bytes()
    except (OSError, ValueError) as error:
        raise PayloadRefused(str(error), field=field, fix=fix) from None
