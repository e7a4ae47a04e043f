"""Shared by all adapters in Python: verbs, clock, gate and score board. Needs the standard library only.

An adapter is a module that defines a class and ends with `run(ThatClass())`. The harness starts it in the
environment of its system as `python -P -m bench.peers.adapters.<name> VERB ...` with the project's root as
working directory and PYTHONPATH. So an adapter may have the name of its package, and a handler that is found
by name is `bench.peers.adapters.<name>.noop`.

Asynchronous systems derive from `Adapter`, blocking ones from `BlockingAdapter`. Both have the same few
methods; every verb uses them and may be overridden where a system has a better way. Handlers call
`board.noop()`, `board.stamp(sent_ns)` or `board.slow(number)` first (`slow` then takes one second).
Output of a system goes to stderr; stdout is for the answers.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from typing import Any

from bench.peers.adapters._async import Adapter
from bench.peers.adapters._blocking import BlockingAdapter
from bench.peers.adapters._board import board
from bench.peers.adapters._gate import Answers, Gate

__all__ = ["Adapter", "BlockingAdapter", "Gate", "board", "postgres", "redis", "run"]

Settled = Callable[[Any], Any]
"""The result of a call, whether or not it must be awaited."""


def postgres() -> str:
    """The address of the database."""
    return os.environ["BENCH_POSTGRES"]


def redis() -> str:
    """The address of the Redis server."""
    return os.environ["BENCH_REDIS"]


def run(adapter: Adapter | BlockingAdapter) -> None:
    """Run the verb of the command line."""
    with asyncio.Runner(loop_factory=adapter.new_loop) as runner:
        # A blocking system is called outside of any event loop: it may start its own.
        settled = runner.run if isinstance(adapter, Adapter) else lambda value: value
        answer(adapter, sys.argv[1:], Answers(), settled)


def answer(adapter: Adapter | BlockingAdapter, words: list[str], answers: Answers, settled: Settled) -> None:
    """Answer one verb."""
    match words:
        case ["about"]:
            answers.say(adapter.about())
        case ["prepare"]:
            settled(adapter.prepare())
            answers.say({})
        case ["work", slots]:
            settled(adapter.work(int(slots), Gate(answers)))
        case _:
            settled(adapter.open())
            try:
                answer_connected(adapter, words, answers, settled)
            finally:
                settled(adapter.close())


def answer_connected(
    adapter: Adapter | BlockingAdapter, words: list[str], answers: Answers, settled: Settled
) -> None:
    """Answer one verb that needs the store."""
    adapter.clock = answers.await_clock
    match words:
        case ["enqueue", ("bulk" | "single" | "paced" | "slow") as way, *numbers]:
            answers.say({"seconds": settled(getattr(adapter, way)(*map(int, numbers)))})
        case ["latency", jobs]:
            settled(adapter.latency(int(jobs)))
            answers.say({})
        case ["left"]:
            answers.say({"left": settled(adapter.left())})
        case ["left", "--watch"]:
            while sys.stdin.readline():
                answers.say({"left": settled(adapter.left())})
        case _:
            raise SystemExit(f"not a verb: {' '.join(words)}")
