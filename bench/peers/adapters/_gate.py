"""Synchronize a worker with the harness: ready, start, stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any


class Answers:
    """The real stdout; output of the systems themselves goes to stderr."""

    def __init__(self) -> None:
        self.file = os.dup(1)
        os.dup2(2, 1)

    def say(self, answer: dict[str, Any]) -> None:
        """Write one line of JSON."""
        os.write(self.file, (json.dumps(answer) + "\n").encode())

    def await_clock(self) -> None:
        """Report that everything before the measured part is done; return when the counters are read."""
        self.say({"ready": True})
        if not os.read(0, 64):
            sys.exit(0)


class Gate:
    """Holds a worker until the clock starts."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def wait(self) -> None:
        """Report that the worker is ready; return at "go". Closing stdin later sends SIGTERM."""
        # Not by sys.stdin: a thread blocked in it would keep the interpreter from exiting.
        self.answers.await_clock()
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Wait until the harness closes stdin."""
        while os.read(0, 64):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    async def ready(self) -> asyncio.Event:
        """As `wait`; the event is set at SIGTERM."""
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await asyncio.to_thread(self.wait)
        return stop
