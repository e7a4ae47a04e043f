"""An alias for make_release.py, whose imports must stay as they are."""

from tests.db.open_transactions import wait_for_transactions as settle

__all__ = ["settle"]
