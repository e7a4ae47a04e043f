"""A measurement waits for a quiet machine, within limits."""

from __future__ import annotations

import os

import pytest
from bench.peers.processes import TICKS, cpu_seconds
from bench.peers.quiet import Quiet, Sample, machine_seconds


class Machine:
    """Time passes in pauses only; others use so many cores in each of them."""

    def __init__(self, *others: float, own: float = 0.0) -> None:
        self.others = list(others)
        self.own_cores = own
        self.now = self.own = self.all = 0.0

    def pause(self, seconds: float) -> None:
        others = self.others.pop(0) if len(self.others) > 1 else self.others[0]
        self.now += seconds
        self.own += self.own_cores * seconds
        self.all += (self.own_cores + others) * seconds

    def quiet(self, *, wait: float = 10.0, budget: float = 100.0) -> Quiet:
        return Quiet(
            lambda: self.own,
            wait=wait,
            budget=budget,
            clock=lambda: self.now,
            pause=self.pause,
            machine=lambda: self.all,
        )


def test_a_measurement_starts_as_soon_as_others_are_quiet() -> None:
    machine = Machine(1.5, 0.8, 0.05)
    assert machine.quiet().until_quiet() == pytest.approx(0.05)
    assert machine.now == 3


def test_the_benchmark_does_not_wait_for_itself() -> None:
    machine = Machine(0.0, own=1.7)
    assert machine.quiet().until_quiet() == pytest.approx(0.0)
    assert machine.now == 1


def test_the_wait_ends_at_its_limit_and_tells_how_busy_it_was() -> None:
    machine = Machine(1.2)
    assert machine.quiet(wait=4).until_quiet() == pytest.approx(1.2)
    assert machine.now == 4


def test_all_waits_of_a_run_together_have_a_limit() -> None:
    machine = Machine(1.2)
    quiet = machine.quiet(wait=4, budget=6)
    spent = []
    for _ in range(4):
        start = machine.now
        quiet.until_quiet()
        spent.append(machine.now - start)
    assert spent == [4, 2, 1, 1]


def test_time_stolen_by_other_machines_counts_and_idle_time_does_not() -> None:
    before = "cpu  100 10 50 9000 70 3 2 5 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n"
    after = "cpu  100 10 50 9999 99 3 2 25 0 0\n"
    assert machine_seconds(before) == 170 / TICKS
    assert machine_seconds(after) - machine_seconds(before) == pytest.approx(20 / TICKS)


def test_rounding_of_the_counters_does_not_give_less_than_nothing() -> None:
    assert Sample(2.0, 10.0, 5.1).others_since(Sample(1.0, 10.0, 5.0)) == 0.0


def test_a_process_that_is_in_two_trees_counts_once() -> None:
    alone = cpu_seconds(os.getpid())
    assert alone <= cpu_seconds(os.getpid(), os.getpid()) < 1.5 * alone
