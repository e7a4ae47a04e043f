"""Ways to seed a bug: another statement text, another database object, another function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import pytest

from duly.db import statements
from duly.db.statements import statement, statement_sources
from tests.mutants.stage import Stage

Patch = Callable[[Stage], AbstractContextManager[None]]
Edit = tuple[str, str]


def together(*patches: Patch) -> Patch:
    """Apply all of them."""

    @contextmanager
    def applied(stage: Stage) -> Iterator[None]:
        with ExitStack() as stack:
            for patch in patches:
                stack.enter_context(patch(stage))
            yield

    return applied


def edited(**changes: list[Edit]) -> Patch:
    """Replace parts of statements, named as `jobs__settle`; the replaced text must exist."""

    @contextmanager
    def applied(stage: Stage) -> Iterator[None]:
        texts = {name.replace("__", "/"): _text(name, edits) for name, edits in changes.items()}
        sources = statement_sources() | texts
        statement.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(statements, "statement_sources", lambda: sources)
            try:
                yield
            finally:
                statement.cache_clear()

    return applied


def _text(name: str, edits: list[Edit]) -> str:
    text = statement(name.replace("__", "/"))
    for old, new in edits:
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    return text


def in_database(*commands: str) -> Patch:
    """Replace objects in the test's own database, which is dropped afterwards."""

    @contextmanager
    def applied(stage: Stage) -> Iterator[None]:
        for command in commands:
            stage.sql.execute(command)
        yield

    return applied


def in_code(owner: Any, name: str, made_from: Callable[[Any], Any]) -> Patch:
    """Replace a function by one derived from it."""

    @contextmanager
    def applied(stage: Stage) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(owner, name, made_from(getattr(owner, name)))
            yield

    return applied
