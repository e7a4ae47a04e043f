"""Interrupt handlers that block the event loop; checked on the heartbeat's thread, which still runs."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any

from duly.jobs.request_context import current_context

if TYPE_CHECKING:
    from duly.worker.execute import Executor

log = logging.getLogger("duly.worker")
_BLOCKED_AFTER = 1.0
_SIGNAL = signal.SIGUSR2


class LoopBlocked(BaseException):
    """Raised inside a handler that blocks the event loop beyond its deadline."""


class Watchdog:
    """Interrupts a late handler by a signal, which also ends a blocking call; gives up after a time-out."""

    def __init__(
        self, executor: Executor, timeout: float, when_stuck: Callable[[], None] | None = None
    ) -> None:
        self._executor = executor
        self._timeout = timeout
        self._when_stuck = when_stuck
        self._stuck = False
        self._checked_at = self._awake_since = time.monotonic()
        self._armed = threading.current_thread() is threading.main_thread()
        if self._armed:
            _signal_handler.add(self)

    def close(self) -> None:
        """Restore the previous signal handler."""
        if self._armed:
            self._armed = False  # unhandled, the signal would end the process
            _signal_handler.remove(self)

    def check(self) -> bool:
        """Check the loop, from the heartbeat's thread; return whether it is blocked for good."""
        now = time.monotonic()
        slept, self._checked_at = now - self._checked_at > 2 * _BLOCKED_AFTER, now
        if slept:
            # The whole process was frozen: the loop has had no chance to run yet.
            self._awake_since = now
            return self._stuck
        blocked = now - max(self._executor.ticked_at, self._awake_since)
        late = blocked >= _BLOCKED_AFTER and (
            bool(self._executor.abandoned) or any(map(self._executor.is_late, list(self._executor.runs)))
        )
        if late and blocked > self._timeout:
            self._give_up(blocked)
        elif late and self._armed:
            signal.pthread_kill(threading.main_thread().ident or 0, _SIGNAL)
        elif blocked < _BLOCKED_AFTER:
            self._stuck = False
        return self._stuck

    def _give_up(self, blocked: float) -> None:
        if not self._stuck:
            log.critical("a handler has blocked the event loop for %.0f s; giving up", blocked)
            self._stuck = True
            if self._when_stuck is not None:
                self._when_stuck()

    def interrupt(self) -> None:
        """Raise in the late handler; runs on the loop's thread, inside the code that blocks it."""
        # The request context names the job, also in a task that a handler has started.
        job_id = current_context().parent_id
        for run in list(self._executor.runs):
            if run.job.job_id == job_id and self._executor.is_late(run):
                self._executor.force_late(run)
                raise LoopBlocked(f"job {run.job.job_id} blocked the event loop")
        if any(run.job.job_id == job_id for run in list(self._executor.abandoned.values())):
            raise LoopBlocked(f"abandoned job {job_id} blocked the event loop")


class _SignalHandler:
    """All watchdogs of the process share one signal, however many workers come and go."""

    def __init__(self) -> None:
        self._watchdogs: list[Watchdog] = []
        self._previous: Any = None

    def add(self, watchdog: Watchdog) -> None:
        if not self._watchdogs:
            self._previous = signal.signal(_SIGNAL, self._on_signal)
        self._watchdogs.append(watchdog)

    def remove(self, watchdog: Watchdog) -> None:
        self._watchdogs.remove(watchdog)
        if not self._watchdogs:
            signal.signal(_SIGNAL, self._previous or signal.SIG_DFL)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        for watchdog in list(self._watchdogs):
            watchdog.interrupt()


_signal_handler = _SignalHandler()
