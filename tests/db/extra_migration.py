"""Add a migration to those of the engine."""

from __future__ import annotations

import pytest

from duly.core.schema import Schema
from duly.db import migrate
from duly.db.migrate import ENGINE, Migration


def add_migration(monkeypatch: pytest.MonkeyPatch, added: Migration) -> None:
    """Patch the migrations of the engine: append one, or replace the one of the same number."""
    shipped = migrate.migrations

    def migrations(schema: Schema = ENGINE) -> list[Migration]:
        if schema != ENGINE:
            return shipped(schema)
        return [*({m.version: m for m in shipped()} | {added.version: added}).values()]

    monkeypatch.setattr(migrate, "migrations", migrations)
