"""For tests of what waits for open transactions: those of other tests, on the same server, are open too."""

from __future__ import annotations

from typing import Any

import psycopg


def settle(sql: psycopg.Connection[Any]) -> None:
    """Wait until every transaction that is open now has ended, in whichever database."""
    row = sql.execute("select pg_current_xact_id()::text").fetchone()
    assert row
    over = "select pg_snapshot_xmin(pg_current_snapshot()) > %s::xid8"
    while sql.execute(over, row).fetchone() != (True,):
        sql.execute("select pg_sleep(0.005)")
