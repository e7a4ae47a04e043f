"""The plans of whatever is executed, as the server itself saw them: also those within functions.

The statements of the product are not repeated here. Its own functions send them, over a connection whose
server side explains every statement to the client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg

from tests.plans.test_listing import nodes

GROWING = (
    *("job_records", "job_states", "event_log", "result_partials", "result_finals", "ledger", "active_runs"),
    *("ready", "scheduled", "claims", "workers", "gates", "organizations", "dead_letters"),
    "queue_minutes",
)
"""Tables that may be large: nothing of them may be read but what is asked for."""
_SEEN = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
    "client_min_messages": "notice",
}
OPTIONS = " ".join(f"-c {name}={value}" for name, value in _SEEN.items())


class Seen:
    """What was executed since this was asked last."""

    def __init__(self, *conns: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self.plans: list[dict[str, Any]] = []
        for conn in conns:
            conn.add_notice_handler(self.hear)

    def hear(self, said: psycopg.errors.Diagnostic) -> None:
        _, found, plan = (said.message_primary or "").partition("plan:\n")
        if found:
            self.plans.append(json.loads(plan))

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Every step of every statement."""
        for plan in self.plans:
            yield from nodes(plan["Plan"])

    @property
    def buffers(self) -> int:
        """Pages touched. The last statement to end is the outermost: it has counted those within."""
        plan = self.plans[-1]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    @property
    def read(self) -> dict[str, float]:
        """How many rows of each growing table were read; a partition counts as its table."""
        found: dict[str, float] = {}
        for node in self.nodes():
            table = _table(node)
            if table and "Scan" in node["Node Type"]:
                found[table] = found.get(table, 0) + _rows(node)
        return found

    @property
    def scans(self) -> set[str]:
        """The growing tables that were read from end to end; where there is no row, that costs nothing."""
        return {
            node["Relation Name"]
            for node in self.nodes()
            if node["Node Type"] == "Seq Scan" and _table(node) and _rows(node)
        }

    @property
    def indexes(self) -> set[str]:
        """The indexes that found something; that of a partition by the name it would have without."""
        used = {node["Index Name"] for node in self.nodes() if "Index Name" in node and _rows(node)}
        return {re.sub(r"_(\d{8}|default)_", "_", name) for name in used}

    @property
    def sorted(self) -> float:
        """The most rows that one step put in order."""
        return max((_rows(node) for node in self.nodes() if "Sort" in node["Node Type"]), default=0)


def _rows(node: dict[str, Any]) -> float:
    dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + dropped) * node["Actual Loops"])


def _table(node: dict[str, Any]) -> str | None:
    name = node.get("Relation Name", "")
    return next((table for table in GROWING if name == table or name.startswith(f"{table}_")), None)
