"""`duly migrate`."""

from __future__ import annotations

from duly.cli.application import find
from duly.cli.options import AppName, AsJson
from duly.cli.show import print_json


def migrate(app: AppName = None, as_json: AsJson = False) -> None:
    """Bring the database to the version of this package."""
    applied = find(app).migrate()
    if as_json:
        print_json({"applied": applied})
    else:
        print("\n".join(f"applied {name}" for name in applied) or "up to date")
