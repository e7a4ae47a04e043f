"""Migrations that a test adds to those of the engine."""

from __future__ import annotations

import pytest

from duly.core.schema import Schema
from duly.db import migrate
from duly.db.migrate import ENGINE, Migration


def add(monkeypatch: pytest.MonkeyPatch, added: Migration) -> None:
    """Let the engine have one more migration, or another one of the same number."""
    shipped = migrate.migrations

    def migrations(schema: Schema = ENGINE) -> list[Migration]:
        kept = [m for m in shipped(schema) if schema != ENGINE or m.version != added.version]
        return [*kept, added] if schema == ENGINE else kept

    monkeypatch.setattr(migrate, "migrations", migrations)
