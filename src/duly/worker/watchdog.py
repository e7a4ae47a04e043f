"""A handler that blocks the event loop blocks all but the heartbeat, which therefore looks after it."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from duly.client.context import surroundings
from duly.worker.executor import Executor

log = logging.getLogger("duly.worker")
_QUIET = 1.0
_SIGNAL = signal.SIGUSR2


class LoopBlocked(BaseException):
    """Raised inside a handler that blocks the event loop although its time is over."""


class Watchdog:
    """Interrupts such a handler by a signal, which also ends a blocking call; or else gives up."""

    def __init__(
        self, executor: Executor, patience: float, when_stuck: Callable[[], None] | None = None
    ) -> None:
        self._executor = executor
        self._patience = patience
        self._when_stuck = when_stuck
        self._stuck = False
        self._looked_at = self._awake_since = time.monotonic()
        self._armed = threading.current_thread() is threading.main_thread()
        if self._armed:
            _kennel.enter(self)

    def close(self) -> None:
        """Take the signal back."""
        if self._armed:
            self._armed = False  # unhandled, the signal would end the process
            _kennel.leave(self)

    def check(self) -> bool:
        """Called from the heartbeat's thread: whether the loop seems to be blocked for good."""
        now = time.monotonic()
        slept, self._looked_at = now - self._looked_at > 2 * _QUIET, now
        if slept:
            # The whole process stood still: the loop has had no chance yet, nor at a second look right after.
            self._awake_since = now
            return self._stuck
        blocked = now - max(self._executor.ticked_at, self._awake_since)
        late = blocked >= _QUIET and (
            bool(self._executor.strays)
            or any(map(self._executor.is_late, list(self._executor.runs.values())))
        )
        if late and blocked > self._patience:
            self._give_up(blocked)
        elif late and self._armed:
            signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)
        elif blocked < _QUIET:
            self._stuck = False
        return self._stuck

    def _give_up(self, blocked: float) -> None:
        if not self._stuck:
            log.critical("a handler has blocked the event loop for %.0f s; giving up", blocked)
            self._stuck = True
            if self._when_stuck is not None:
                self._when_stuck()

    def interrupt(self) -> None:
        """On the loop's own thread, inside whatever it is doing."""
        # Its surroundings tell whose code this is, also in a task that a handler has started.
        job_id = surroundings().parent_id
        for run in list(self._executor.runs.values()):
            if run.job.job_id == job_id and self._executor.is_late(run):
                self._executor.end_late(run)
                raise LoopBlocked(f"job {run.job.job_id} blocked the event loop")
        if any(run.job.job_id == job_id for run in list(self._executor.strays.values())):
            raise LoopBlocked(f"job {job_id} was abandoned, and blocked the event loop")


class _Kennel:
    """All watchdogs of the process: there is one signal for them, however many workers come and go."""

    def __init__(self) -> None:
        self._dogs: list[Watchdog] = []
        self._before: Any = None

    def enter(self, dog: Watchdog) -> None:
        if not self._dogs:
            self._before = signal.signal(_SIGNAL, self._whistle)
        self._dogs.append(dog)

    def leave(self, dog: Watchdog) -> None:
        self._dogs.remove(dog)
        if not self._dogs:
            signal.signal(_SIGNAL, self._before or signal.SIG_DFL)

    def _whistle(self, number: int, frame: FrameType | None) -> None:
        for dog in list(self._dogs):
            dog.interrupt()


_kennel = _Kennel()
