"""Results of a run, written by hand."""

from __future__ import annotations

from typing import Any

from bench.peers.catalogue import SYSTEMS

ROUNDS = 6
SPEEDS: dict[str, dict[str, float]] = {
    "duly": {
        "drain_1": 15_000,
        "drain_2": 22_000,
        "bulk": 20_000,
        "single_20": 2_500,
        "single_1": 1_500,
        "p50_ms": 2,
    },
    "pgqueuer": {
        "drain_1": 8_000,
        "drain_2": 16_000,
        "bulk": 20_000,
        "single_20": 1_000,
        "single_1": 1_400,
        "p50_ms": 4,
    },
    "pg_boss": {"drain_1": 14_000},
    "graphile_worker": {"drain_1": 13_000, "drain_2": 21_000, "bulk": 24_000},
    "taskiq_pg": {"drain_1": 1_200, "p50_ms": 1.6},
    "dramatiq_redis": {"drain_1": 2_000},
}


def results(**changes: dict[str, float | str]) -> dict[str, Any]:
    """Return a run of six equal rounds that reached every target, with changes: {system: {figure: value}}."""
    ours: dict[str, float | str] = {"backlog_1000000": 14_500, "recovery_s": 6.0}
    systems: dict[str, Any] = {}
    for system in SYSTEMS:
        figures = {**SPEEDS.get(system.key, {}), **(ours if system.key == "duly" else {})}
        figures |= changes.get(system.key, {})
        systems[system.key] = {
            "title": system.title,
            "language": system.language,
            "store": system.store,
            "about": {"version": "1.0", "settings": "the best", "persists": "a row"} if figures else {},
            "not_run": None if figures else "no such thing here",
            "rounds": [dict(figures) for _ in range(ROUNDS)] if figures else [],
            "busy": [{} for _ in range(ROUNDS)] if figures else [],
            "failures": {},
        }
    return {
        "jobs": 10_000,
        "rounds": ROUNDS,
        "quiet": {"waited_s": 3.0},
        "measures": ["drain"],
        "backlogs": [1_000_000],
        "machine": {
            "cores": 2,
            "architecture": "x86_64",
            "python": "3.11",
            "postgres": "18.6",
            "redis": None,
            "postgres_settings": {"fsync": "on"},
            "redis_settings": {"appendonly": "yes"},
        },
        "systems": systems,
    }
