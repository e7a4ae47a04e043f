"""The measures: each takes a bench and returns its figures by name.

A figure is a number, or a text if there is none.
"""

from __future__ import annotations

from collections.abc import Callable

from bench.peers.bench import Bench
from bench.peers.measures import drain, enqueue, latency, recovery

Figures = dict[str, float | str]

MEASURES: dict[str, Callable[[Bench], Figures]] = {
    "enqueue": enqueue.measure,
    "drain": drain.measure,
    "drain2": drain.measure_two,
    "sustained": drain.measure_sustained,
    "latency": latency.measure,
    "recovery": recovery.measure,
}
"""By name, in the order of execution."""

JUDGED: dict[str, tuple[str, ...]] = {
    "enqueue": ("single_1", "single_20"),
    "drain": ("bulk", "drain_1"),
    "drain2": ("drain_2",),
    "sustained": ("sustained",),
    "latency": ("p50_ms",),
}
"""The figures of each measure whose ratios decide whether another round is needed."""

ONCE = {"recovery"}
"""Run in the first round only: they depend on time-outs, not on speed."""
