"""Token buckets by key."""

from __future__ import annotations

from duly.features.throttle import Throttle


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_is_admitted_and_then_the_rate() -> None:
    clock = Clock()
    throttle: Throttle[str] = Throttle(0.5, 3, clock=clock)
    assert [throttle.take("a").admitted for _ in range(4)] == [True, True, True, False]
    assert throttle.take("a").retry_after == 2
    clock.now += 2
    assert throttle.take("a") == (True, 0, 2)
    assert not throttle.take("a").admitted


def test_keys_have_buckets_of_their_own() -> None:
    throttle: Throttle[str] = Throttle(1, 1, clock=Clock())
    assert throttle.take("a").admitted
    assert throttle.take("b").admitted
    assert not throttle.take("a").admitted


def test_peeking_takes_nothing_and_charging_goes_into_debt() -> None:
    clock = Clock()
    throttle: Throttle[str] = Throttle(1, 1, clock=clock)
    assert throttle.peek("a") == throttle.peek("a") == (True, 1, 1)
    throttle.charge("a")
    assert throttle.charge("a").tokens == -1
    assert throttle.peek("a") == (False, -1, 2)
    clock.now += 2
    assert throttle.peek("a").admitted


def test_the_key_that_was_not_used_for_the_longest_time_is_dropped() -> None:
    throttle: Throttle[int] = Throttle(1, 1, max_keys=2, clock=Clock())
    for key in (1, 2, 1, 3):
        throttle.take(key)
    assert throttle.take(2).admitted
    assert not throttle.take(3).admitted
