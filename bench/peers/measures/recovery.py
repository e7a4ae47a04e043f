"""Time until the jobs of a killed worker restart, with the system's own settings."""

from __future__ import annotations

import time

from bench.peers.bench import STEP, Bench

JOBS = 100
ENOUGH = JOBS // 2
FILLS_WITHIN_NS = 10_000_000_000
SURELY_RUNNING_NS = 900_000_000


def measure(bench: Bench) -> dict[str, float | str]:
    """Kill a worker with running jobs of one second, start another at once, and wait for the restarts."""
    bench.fresh()
    worker, _ = bench.worker(JOBS)
    worker.tell("go")
    bench.ask("enqueue", "slow", str(JOBS))
    wait_until_busy(bench)
    worker.kill()
    bench.running.remove(worker)
    killed_ns = time.monotonic_ns()
    victims = {
        start.number for start in bench.scores.slow_starts() if killed_ns - start.at_ns < SURELY_RUNNING_NS
    }
    if not victims:
        raise ValueError("no job was running when the worker was killed")
    another, _ = bench.worker(JOBS)
    another.tell("go")
    deadline = time.monotonic() + bench.sizes.recovery_limit
    while (again := restarts(bench, victims, killed_ns)).keys() != victims:
        if time.monotonic() > deadline:
            return {"recovery_s": judged(bench, len(again), len(victims)), "victims": len(victims)}
        time.sleep(10 * STEP)
    bench.end()
    return {"recovery_s": (max(again.values()) - killed_ns) / 1e9, "victims": len(victims)}


def wait_until_busy(bench: Bench) -> None:
    """Wait until half of the jobs have started, or for a while: not all systems run that many at once."""
    deadline = time.monotonic() + bench.limit
    while len(starts := bench.scores.slow_starts()) < ENOUGH:
        bench.check(deadline, f"{len(starts)} of {JOBS} slow jobs had started")
        if starts and starts[-1].at_ns - starts[0].at_ns > FILLS_WITHIN_NS:
            return
        time.sleep(STEP)


def restarts(bench: Bench, victims: set[int], killed_ns: int) -> dict[int, int]:
    """Return the restart time of each victim."""
    found: dict[int, int] = {}
    for start in bench.scores.slow_starts():
        if start.number in victims and start.at_ns > killed_ns:
            found.setdefault(start.number, start.at_ns)
    return found


def judged(bench: Bench, again: int, victims: int) -> str:
    """Describe the jobs that did not restart: still stored, or lost."""
    left = int(bench.ask("left")["left"])
    missing = victims - again
    if left < missing:
        return f"lost {missing - left} of {victims}"
    return f"not within {bench.sizes.recovery_limit:.0f} s ({again} of {victims})"
