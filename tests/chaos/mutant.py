"""A seeded bug in every process of a run: the checker must report it."""

from __future__ import annotations

import os
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, cast

import psycopg

from tests.chaos.app import app
from tests.mutants.registry import MUTANTS, Mutant
from tests.mutants.stage import Stage

MUTANT = "DULY_CHAOS_MUTANT"
_installed = ExitStack()
"""Never closed: the bug stays for the life of the process."""


def find(words: str) -> Mutant:
    """Return the mutant whose name contains these words."""
    found = [mutant for mutant in MUTANTS if words in mutant.name]
    if len(found) != 1:
        raise SystemExit(f"--mutant: {len(found)} are called {words!r}: see ./dev mutants")
    return found[0]


def infect(sql: psycopg.Connection[Any] | None = None) -> None:
    """Install the bug, if one was requested. Only the process with `sql` changes the database."""
    if words := os.environ.get(MUTANT):
        nothing = SimpleNamespace(execute=lambda *_: None)
        _installed.enter_context(find(words).patch(cast(Stage, SimpleNamespace(app=app, sql=sql or nothing))))
