"""Milliseconds from the call of enqueue to the start of the handler, while nothing else is to be done."""

from __future__ import annotations

from bench.figures.numbers import percentiles
from bench.peers.bench import Bench

MOST = 200


def measure(bench: Bench) -> dict[str, float | str]:
    """One job at a time."""
    jobs = min(MOST, max(20, bench.sizes.jobs // 10))
    bench.fresh()
    worker, _ = bench.worker()
    worker.tell("go")
    bench.ask("latency", str(jobs))
    bench.end()
    found = bench.scores.latencies_ms()
    if len(found) != jobs:
        raise ValueError(f"{len(found)} starts of {jobs} jobs")
    middle = percentiles(found)
    return {"p50_ms": middle["p50"], "p99_ms": middle["p99"]}
