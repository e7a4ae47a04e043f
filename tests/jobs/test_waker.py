"""Workers hear of every new job soon, by few notifications."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from duly.jobs import enqueue_batcher
from duly.jobs.enqueue_batcher import Waker


class Recorder:
    """Takes the place of the database."""

    def __init__(self) -> None:
        self.count = 0
        self.notified = asyncio.Event()

    async def notify(self, _: str) -> None:
        self.count += 1
        self.notified.set()


@pytest.fixture
def sent() -> Recorder:
    return Recorder()


@pytest.fixture
def waker(sent: Recorder, monkeypatch: pytest.MonkeyPatch) -> Waker:
    monkeypatch.setattr(enqueue_batcher, "_NOTIFY_INTERVAL", 0.2)
    database: Any = sent
    return Waker(database)


@pytest.fixture
async def pause(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Advance the clock of the event loop beyond the interval of notifications."""
    loop = asyncio.get_running_loop()
    real = loop.time

    def advance() -> None:
        monkeypatch.setattr(loop, "time", lambda: real() + 0.3)

    return advance


def take_turn(waker: Waker) -> str | None:
    with waker.turn() as wake:
        return wake


async def test_the_first_enqueue_notifies_with_its_commit_and_the_next_after_it(waker: Waker) -> None:
    assert [take_turn(waker) for _ in range(4)] == ["with commit", "after commit", None, None]


async def test_after_a_pause_an_enqueue_notifies_with_its_commit_again(
    waker: Waker, sent: Recorder, pause: Callable[[], None]
) -> None:
    for _ in range(2):
        take_turn(waker)
    pause()
    assert take_turn(waker) == "with commit"
    await waker.close()
    assert sent.count == 0


async def test_enqueues_that_did_not_notify_share_one_notification(waker: Waker, sent: Recorder) -> None:
    for _ in range(10):
        take_turn(waker)
    await asyncio.wait_for(sent.notified.wait(), 5)
    await waker.close()
    assert sent.count == 1


async def test_a_later_enqueue_notifies_for_those_before_it(
    waker: Waker, sent: Recorder, pause: Callable[[], None]
) -> None:
    assert [take_turn(waker) for _ in range(3)][-1] is None
    pause()
    assert take_turn(waker) == "after commit"
    await waker.close()
    assert sent.count == 0


async def test_a_failed_enqueue_does_not_swallow_the_notification_of_others(
    waker: Waker, sent: Recorder
) -> None:
    with pytest.raises(ZeroDivisionError), waker.turn():
        raise ZeroDivisionError
    await asyncio.wait_for(sent.notified.wait(), 5)


async def test_a_slow_enqueue_does_not_delay_the_notification_of_others(waker: Waker, sent: Recorder) -> None:
    waker.wake()
    with waker.turn() as wake:
        assert wake == "after commit"
        await asyncio.wait_for(sent.notified.wait(), 5)


async def test_closing_sends_the_pending_notification(waker: Waker, sent: Recorder) -> None:
    waker.wake()
    await waker.close()
    assert sent.count == 1
