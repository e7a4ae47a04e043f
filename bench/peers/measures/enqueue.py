"""Jobs per second that one process enqueues with one call each. The bulk rate is taken with the drain."""

from __future__ import annotations

from bench.peers.bench import Bench

AT_ONCE = 20


def measure(bench: Bench) -> dict[str, float | str]:
    """One call at a time, then twenty."""
    figures: dict[str, float | str] = {}
    for count, jobs in ((1, bench.sizes.jobs // 10), (AT_ONCE, bench.sizes.jobs // 5)):
        bench.fresh()
        figures[f"single_{count}"] = jobs / bench.enqueue("single", str(jobs), str(count))
    return figures
