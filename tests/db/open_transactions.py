"""Wait for open transactions: readers in commit order do so, and other tests open some on this server."""

from __future__ import annotations

from typing import Any

import psycopg


def wait_for_transactions(sql: psycopg.Connection[Any]) -> None:
    """Wait until every transaction that is open now, in any database of the server, has ended."""
    row = sql.execute("select pg_current_xact_id()::text").fetchone()
    assert row
    ended = "select pg_snapshot_xmin(pg_current_snapshot()) > %s::xid8"
    while sql.execute(ended, row).fetchone() != (True,):
        sql.execute("select pg_sleep(0.005)")
