"""Rate of one process that enqueues: with one call per job, and for the drain by bulk calls."""

from __future__ import annotations

from bench.peers.bench import Bench
from bench.peers.measures import resources

AT_ONCE = 20


def measure(bench: Bench) -> dict[str, float | str]:
    """Measure one call at a time, then twenty."""
    figures: dict[str, float | str] = {}
    for count, jobs in ((1, bench.sizes.jobs // 10), (AT_ONCE, bench.sizes.jobs // 5)):
        bench.fresh()
        figures |= enqueue(bench, f"single_{count}", "single", jobs, count)
    return figures


def enqueue(bench: Bench, name: str, way: str, jobs: int, *numbers: int) -> dict[str, float | str]:
    """Enqueue this many jobs; return their rate, by the adapter's clock, and their costs."""
    with bench.started("enqueue", way, str(jobs), *map(str, numbers)) as sender:
        bench.until_ready(sender)
        before = resources.read(bench, [sender])
        sender.tell("go")
        seconds = float(bench.answer(sender)["seconds"])
        return {name: jobs / seconds, **resources.costs(bench, name, before, [sender], jobs)}
