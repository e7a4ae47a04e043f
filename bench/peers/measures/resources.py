"""Cost of a measurement: CPU time of workers and stores, WAL, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers.bench import Bench
from bench.peers.catalogue import POSTGRES
from bench.peers.processes import Program, cpu_seconds, peak_memory_mb


@dataclass(frozen=True)
class Reading:
    """Resources used so far."""

    workers: float
    store: float
    wal: int


def read(bench: Bench, workers: Sequence[Program] = ()) -> Reading:
    """Read the counters."""
    postgres, redis = bench.stores.postgres, bench.stores.redis
    store = postgres if bench.system.store == POSTGRES or redis is None else redis
    return Reading(sum(cpu_seconds(w.pid) for w in workers), store.cpu_seconds(), postgres.wal_bytes())


def cost_of_enqueue(bench: Bench, before: Reading, jobs: int) -> dict[str, float | str]:
    """Return the bytes of WAL per enqueued job."""
    if bench.system.store != POSTGRES:
        return {}
    return {"wal_enqueue": (read(bench).wal - before.wal) / jobs}


def cost_of_drain(
    bench: Bench, before: Reading, workers: Sequence[Program], jobs: int
) -> dict[str, float | str]:
    """Return microseconds and bytes per finished job, and the worker's peak memory."""
    after = read(bench, workers)
    figures: dict[str, float | str] = {
        "cpu_worker_us": (after.workers - before.workers) / jobs * 1e6,
        "cpu_store_us": (after.store - before.store) / jobs * 1e6,
        "memory_mb": sum(peak_memory_mb(worker.pid) for worker in workers),
    }
    if bench.system.store == POSTGRES:
        figures["wal_drain"] = (after.wal - before.wal) / jobs
    return figures
