"""Milliseconds from the enqueue call to the start of the handler in an idle system."""

from __future__ import annotations

from bench.figures.numbers import percentiles
from bench.peers.bench import Bench
from bench.peers.measures import resources

MAX_JOBS = 200


def measure(bench: Bench) -> dict[str, float | str]:
    """Measure one job at a time; the sender's CPU is not counted, as most of it watches for the start."""
    jobs = min(MAX_JOBS, max(20, bench.sizes.jobs // 10))
    bench.fresh()
    worker, _ = bench.worker()
    worker.tell("go")
    with bench.started("latency", str(jobs)) as sender:
        bench.until_ready(sender)
        before = resources.read(bench, [worker])
        sender.tell("go")
        bench.answer(sender)
        costs = resources.costs(bench, "p50_ms", before, [worker], jobs)
    bench.end()
    found = bench.scores.latencies_ms()
    if len(found) != jobs:
        raise ValueError(f"{len(found)} starts of {jobs} jobs")
    middle = percentiles(found)
    return {"p50_ms": middle["p50"], "p99_ms": middle["p99"], **costs}
