"""Rate of one process that enqueues with one call per job. The drain measures the bulk rate."""

from __future__ import annotations

from bench.peers.bench import Bench

AT_ONCE = 20


def measure(bench: Bench) -> dict[str, float | str]:
    """Measure one call at a time, then twenty."""
    figures: dict[str, float | str] = {}
    for count, jobs in ((1, bench.sizes.jobs // 10), (AT_ONCE, bench.sizes.jobs // 5)):
        bench.fresh()
        figures[f"single_{count}"] = jobs / bench.enqueue("single", str(jobs), str(count))
    return figures
