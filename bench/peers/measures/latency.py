"""Milliseconds from the call of enqueue to the start of the handler, while nothing else is to be done."""

from __future__ import annotations

import statistics

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
    found = sorted(bench.scores.latencies_ms())
    if len(found) != jobs:
        raise ValueError(f"{len(found)} starts of {jobs} jobs")
    return {"p50_ms": statistics.median(found), "p99_ms": found[min(jobs - 1, int(jobs * 0.99))]}
