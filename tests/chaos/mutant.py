"""A seeded bug in every process of a run: the nemesis must see it."""

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
_kept = ExitStack()
"""Never left: the bug stays for the life of the process."""


def find(words: str) -> Mutant:
    """The one whose name has these words."""
    found = [mutant for mutant in MUTANTS if words in mutant.name]
    if len(found) != 1:
        raise SystemExit(f"--mutant: {len(found)} are called {words!r}: see ./dev mutants")
    return found[0]


def infect(sql: psycopg.Connection[Any] | None = None) -> None:
    """Let the bug in, if one was asked for. What it does to the database, only who has `sql` does."""
    if words := os.environ.get(MUTANT):
        nothing = SimpleNamespace(execute=lambda *_: None)
        _kept.enter_context(find(words).patch(cast(Stage, SimpleNamespace(app=app, sql=sql or nothing))))
