"""The plans of executed statements, including those within functions, as the server reports them.

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
    *(
        "job_records",
        "job_states",
        "event_log",
        "result_partials",
        "result_finals",
        "key_ledger",
        "active_runs",
    ),
    *("ready", "scheduled", "claims", "workers", "gates", "organizations", "dead_letters"),
    "queue_minutes",
)
"""Tables that may be large: only the requested rows of them may be read."""
_NOTICE = {
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
OPTIONS = " ".join(f"-c {name}={value}" for name, value in _NOTICE.items())


class PlanRecorder:
    """The plans executed since the last call."""

    def __init__(self, *conns: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self.plans: list[dict[str, Any]] = []
        for conn in conns:
            conn.add_notice_handler(self.hear)

    def hear(self, message: psycopg.errors.Diagnostic) -> None:
        _, found, plan = (message.message_primary or "").partition("plan:\n")
        if found:
            self.plans.append(json.loads(plan))

    def nodes(self) -> Iterator[dict[str, Any]]:
        """Yield every node of every plan."""
        for plan in self.plans:
            yield from nodes(plan["Plan"])

    @property
    def buffers(self) -> int:
        """Return the touched pages. The statement that ends last is the outermost: it includes the others."""
        plan = self.plans[-1]["Plan"]
        return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])

    @property
    def read(self) -> dict[str, float]:
        """Return how many rows of each growing table were read; a partition counts as its table."""
        found: dict[str, float] = {}
        for node in self.nodes():
            table = _table(node)
            if table and "Scan" in node["Node Type"]:
                found[table] = found.get(table, 0) + _rows(node)
        return found

    @property
    def scans(self) -> set[str]:
        """Return the growing tables with a sequential scan; a scan without rows costs nothing."""
        return {
            node["Relation Name"]
            for node in self.nodes()
            if node["Node Type"] == "Seq Scan" and _table(node) and _rows(node)
        }

    @property
    def indexes(self) -> set[str]:
        """Return the indexes that found rows; an index of a partition by the name of its parent."""
        used = {node["Index Name"] for node in self.nodes() if "Index Name" in node and _rows(node)}
        return {re.sub(r"_(\d{8}|default)_", "_", name) for name in used}

    @property
    def sorted(self) -> float:
        """Return the maximum number of rows that one node sorted."""
        return max((_rows(node) for node in self.nodes() if "Sort" in node["Node Type"]), default=0)


def _rows(node: dict[str, Any]) -> float:
    dropped = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return float((node["Actual Rows"] + dropped) * node["Actual Loops"])


def _table(node: dict[str, Any]) -> str | None:
    name = node.get("Relation Name", "")
    return next((table for table in GROWING if name == table or name.startswith(f"{table}_")), None)
