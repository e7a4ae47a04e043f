"""Finding the application, and one piece of work with it."""

from __future__ import annotations

import asyncio
import importlib
import sys
import traceback
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from duly.client.context import context
from duly.model import payload as rules
from duly.model.errors import ConfigurationError, DulyError, PayloadRefused
from duly.wiring import Duly

T = TypeVar("T")
_FIX = "use --app module:attribute, or DULY_APP"


def find(name: str | None, *, needed: bool = False) -> Duly:
    """The application of that name; without one, one that knows no job types."""
    if name is None:
        if needed:
            raise ConfigurationError("missing: this needs your job types", field="app", fix=_FIX)
        return Duly()
    module, _, attribute = name.partition(":")
    found = getattr(_imported(module), attribute or "app", None)
    if not isinstance(found, Duly):
        raise ConfigurationError(f"{name} is no Duly application", field="app", fix=_FIX)
    return found


def _imported(module: str) -> Any:
    # As `python -m` does it: programs are started where they lie.
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(module)
    except DulyError:
        raise  # it says itself what is wrong, and where
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and module.startswith(str(error.name))
        if not missing:
            traceback.print_exc()
        raise ConfigurationError(f"{module} cannot be imported: {error}", field="app", fix=_FIX) from None


def run(name: str | None, work: Callable[[Duly], Awaitable[T]], *, needed: bool = False) -> T:
    """Do one thing with the application, and close it."""
    app = find(name, needed=needed)

    async def once() -> T:
        async with app:
            return await work(app)

    with context(request_id=f"cli-{uuid.uuid4().hex}"):
        return asyncio.run(once())


def read_payload(given: str) -> dict[str, Any]:
    """A payload as it was given: itself, in a file, or on stdin."""
    value = rules.parse(_read(given, "payload", "name a file with JSON"))
    if not isinstance(value, dict):
        raise PayloadRefused("not an object", field="payload", fix="pass a JSON object")
    return value


def read_text(given: str, field: str) -> str:
    """A text as it was given: itself, in a file, or on stdin."""
    fix = "name a file with text in UTF-8"
    try:
        found = _read(given, field, fix)
        return found if isinstance(found, str) else found.decode()
    except UnicodeDecodeError:
        raise PayloadRefused("no UTF-8", field=field, fix=fix) from None


def _read(given: str, field: str, fix: str) -> str | bytes:
    if given == "-":
        return sys.stdin.buffer.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_bytes()
    except (OSError, ValueError) as error:
        raise PayloadRefused(str(error), field=field, fix=fix) from None
