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
    text: str | bytes = given
    if given == "-":
        text = sys.stdin.buffer.read()
    elif given.startswith("@"):
        try:
            text = Path(given[1:]).read_bytes()
        except (OSError, ValueError) as error:
            raise PayloadRefused(str(error), field="payload", fix="name a file with JSON") from None
    value = rules.parse(text)
    if not isinstance(value, dict):
        raise PayloadRefused("not an object", field="payload", fix="pass a JSON object")
    return value
