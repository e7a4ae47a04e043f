"""Throughput of workers: on a full queue, on one that is being filled, and on a large backlog."""

from __future__ import annotations

import time
from dataclasses import dataclass

from bench.peers.bench import Bench
from bench.peers.measures import resources
from bench.peers.measures.enqueue import enqueue
from bench.peers.processes import Program


@dataclass(frozen=True)
class Drained:
    """The result of one drain; `bulk` and `costs` are figures by name."""

    bulk: dict[str, float | str]
    rate: float
    rate_from_go: float
    ready_s: float
    first_s: float
    again: int
    memory_mb: float
    costs: dict[str, float | str]


def drain(bench: Bench, name: str, jobs: int, processes: int) -> Drained:
    """Fill an empty queue by bulk calls, then let this many processes work until it is empty.

    The clock of `rate` starts with the first handler, that of `rate_from_go` with the start signal.
    """
    bench.fresh()
    crew = hired(bench, processes) if bench.system.listens_first else []
    bulk = enqueue(bench, "bulk", "bulk", jobs)
    watch = bench.start("left", "--watch")
    if (full := bench.left(watch)) != jobs:
        raise ValueError(f"{full:,} jobs in the store after {jobs:,} were enqueued")
    crew = crew or hired(bench, processes)
    workers = [program for program, _ in crew]
    bench.stores.postgres.settle()
    before = resources.read(bench, workers)
    go_ns = time.monotonic_ns()
    for worker in workers:
        worker.tell("go")
    end_ns = bench.until_done(jobs, watch)
    costs = resources.costs(bench, name, before, workers, jobs)
    memory_mb = resources.memory_mb(workers)
    first_ns = bench.scores.first_ns()
    bench.end()
    return Drained(
        bulk=bulk,
        rate=jobs / (end_ns - first_ns) * 1e9,
        rate_from_go=jobs / (end_ns - go_ns) * 1e9,
        ready_s=crew[0][1],
        first_s=crew[0][1] + (first_ns - go_ns) / 1e9,
        again=bench.scores.done() - jobs,
        memory_mb=memory_mb,
        costs=costs,
    )


def hired(bench: Bench, processes: int) -> list[tuple[Program, float]]:
    """Start workers that wait for the clock; return them with the seconds each took to be ready."""
    return [bench.worker(slot=slot) for slot in range(processes)]


def measure(bench: Bench) -> dict[str, float | str]:
    """Measure one process: drain rate, bulk rate, start-up and cost."""
    found = drain(bench, "drain_1", bench.sizes.jobs, 1)
    return {
        **found.bulk,
        "drain_1": found.rate,
        "drain_1_from_go": found.rate_from_go,
        "ready_s": found.ready_s,
        "first_s": found.first_s,
        "ran_again": found.again,
        "memory_mb": found.memory_mb,
        **found.costs,
    }


def measure_two(bench: Bench) -> dict[str, float | str]:
    """Measure two processes."""
    found = drain(bench, "drain_2", bench.sizes.jobs, 2)
    return {
        "drain_2": found.rate,
        "drain_2_from_go": found.rate_from_go,
        "ran_again_2": found.again,
        **found.costs,
    }


def measure_backlog(bench: Bench, jobs: int) -> dict[str, float | str]:
    """Measure one process with a backlog of this size."""
    name = f"backlog_{jobs}"
    found = drain(bench, name, jobs, 1)
    return {name: found.rate, f"{name}_again": found.again, **found.costs}


def measure_sustained(bench: Bench) -> dict[str, float | str]:
    """Let one process enqueue as fast as it can while another works, until the queue is empty."""
    jobs = bench.sizes.jobs
    bench.fresh()
    watch = bench.start("left", "--watch")
    bench.left(watch)
    worker, _ = bench.worker()
    worker.tell("go")
    sender = bench.start("enqueue", "paced", str(jobs), "0")
    bench.until_ready(sender)
    both = [worker, sender]
    before = resources.read(bench, both)
    sender.tell("go")
    sent_ns, answer = sender.answer(bench.limit)
    bench.running.remove(sender)
    try:
        end_ns = bench.until_done(jobs, watch)
        costs = resources.costs(bench, "sustained", before, both, jobs)
    finally:
        sender.kill()
    bench.end()
    rate = jobs / (end_ns - sent_ns + float(answer["seconds"]) * 1e9) * 1e9
    return {"sustained": rate, **costs}
