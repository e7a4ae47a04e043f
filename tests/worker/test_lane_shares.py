"""How slots are divided among lanes, checked on arbitrary lanes."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from duly.core.policy import CRITICAL_QUEUE, QUEUES
from duly.worker.claim import Lane, LaneShares


def lanes(weights: list[int], siblings: int = 1) -> list[Lane]:
    """Return the lanes of one queue per weight; the first queue has `siblings` lanes."""
    first = [Lane(f"q:a#t{n}", "q:a", weights[0], f"t{n}") for n in range(siblings)]
    rest = [Lane(f"q:{chr(98 + n)}", f"q:{chr(98 + n)}", w, "") for n, w in enumerate(weights[1:])]
    return [*first, *rest]


def slots_by_lane(shared: list[tuple[Lane, int]]) -> Counter[str]:
    return Counter({lane.name: share for lane, share in shared})


WEIGHTS = st.lists(st.integers(1, 1000), min_size=1, max_size=8)
ROUNDS = st.lists(st.tuples(st.integers(1, 500), st.sets(st.integers(0, 7), min_size=1)), max_size=40)


@given(WEIGHTS, ROUNDS)
@example([5, 5, 6, 2], [(1, {0, 1, 2, 3}), (3, {0, 1, 3}), (3, {0, 1})])
def test_a_round_distributes_exactly_its_slots_whichever_lanes_have_jobs(
    weights: list[int], rounds: list[tuple[int, set[int]]]
) -> None:
    shares, every = LaneShares(), lanes(weights)
    for slots, present_lanes in rounds:
        present = [lane for n, lane in enumerate(every) if n in present_lanes] or every
        shared = shares.divide(slots, present)
        assert sum(share for _, share in shared) == slots
        assert all(share > 0 for _, share in shared)
        assert {lane.name for lane, _ in shared} <= {lane.name for lane in present}


@given(WEIGHTS, st.integers(1, 4), st.lists(st.integers(1, 100), min_size=1, max_size=60))
def test_over_many_rounds_each_lane_gets_slots_in_proportion_to_its_weight(
    weights: list[int], siblings: int, rounds: list[int]
) -> None:
    """Within a few slots after any number of rounds; lanes of a queue share its weight."""
    shares, every = LaneShares(), lanes(weights, siblings)
    got: Counter[str] = Counter()
    for slots in rounds:
        got += slots_by_lane(shares.divide(slots, every))
    in_queue = Counter(lane.queue for lane in every)
    for lane in every:
        due = Fraction(sum(rounds) * lane.weight, sum(weights) * in_queue[lane.queue])
        assert abs(got[lane.name] - due) < 1 + len(every) / 2


@given(WEIGHTS, st.data())
@settings(max_examples=50)
def test_no_lane_with_jobs_starves_whatever_the_others_do(weights: list[int], data: st.DataObject) -> None:
    every = lanes(weights)
    patient, others = every[0], every[1:]
    shares, turns = LaneShares(), sum(weights) // patient.weight + len(every) + 1
    assume(turns < 500)
    for _ in range(2 * turns):
        present_lanes = [lane for lane in others if data.draw(st.booleans())]
        if slots_by_lane(shares.divide(1, [patient, *present_lanes]))[patient.name]:
            return
    raise AssertionError(f"one slot at a time, and none for it in {2 * turns} rounds")


@given(
    st.integers(1, 500),
    st.permutations([Lane(q, q, w, "") for q, w in zip(QUEUES, (8, 4, 2, 2, 2, 1), strict=False)]),
)
def test_the_critical_queue_is_claimed_first(slots: int, every: list[Lane]) -> None:
    shared = LaneShares().divide(slots, every)
    assert shared[0][0].queue == CRITICAL_QUEUE
    assert shared[0][1] == max(share for _, share in shared)


def test_the_critical_queue_is_claimed_first_although_another_has_more_weight() -> None:
    every = [Lane("q:default", "q:default", 100, ""), Lane(CRITICAL_QUEUE, CRITICAL_QUEUE, 8, "")]
    assert [lane.queue for lane, _ in LaneShares().divide(50, every)] == [CRITICAL_QUEUE, "q:default"]


def test_idle_lanes_accumulate_no_share() -> None:
    shares = LaneShares()
    busy, idle = lanes([1, 1])
    for _ in range(1000):
        shares.divide(3, [busy])
    both = [slots_by_lane(shares.divide(10, [busy, idle])) for _ in range(4)]
    assert sum(both, Counter()) == {busy.name: 20, idle.name: 20}


def test_dividing_among_no_lanes_returns_no_shares() -> None:
    assert LaneShares().divide(10, []) == []
