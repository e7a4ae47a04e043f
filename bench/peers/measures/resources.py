"""Cost of a measurement: CPU time of the programs and the store, WAL, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers.bench import Bench
from bench.peers.catalogue import POSTGRES
from bench.peers.processes import Program, cpu_seconds, peak_memory_mb

CLIENT, SERVER, WAL = "_client_us", "_server_us", "_wal"
"""What is appended to the name of a figure for its costs per job: microseconds of CPU, and bytes of WAL."""


@dataclass(frozen=True)
class Reading:
    """Resources used so far."""

    clients: float
    store: float
    wal: int


def read(bench: Bench, clients: Sequence[Program]) -> Reading:
    """Read the counters; clients are the programs that enqueue or work."""
    postgres, redis = bench.stores.postgres, bench.stores.redis
    store = postgres if bench.system.store == POSTGRES or redis is None else redis
    clients_used = cpu_seconds(*(client.pid for client in clients))
    return Reading(clients_used, store.cpu_seconds(), postgres.wal_bytes())


def costs(
    bench: Bench, name: str, before: Reading, clients: Sequence[Program], jobs: int
) -> dict[str, float | str]:
    """Return the microseconds and bytes per job since the first reading, for the figure of this name."""
    after = read(bench, clients)
    figures: dict[str, float | str] = {
        name + CLIENT: (after.clients - before.clients) / jobs * 1e6,
        name + SERVER: (after.store - before.store) / jobs * 1e6,
    }
    if bench.system.store == POSTGRES:
        figures[name + WAL] = (after.wal - before.wal) / jobs
    return figures


def memory_mb(workers: Sequence[Program]) -> float:
    """Return the peak memory of the workers."""
    return sum(peak_memory_mb(worker.pid) for worker in workers)
