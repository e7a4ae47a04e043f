"""How a worker says that it is ready, waits for the clock to start, and learns that it must end."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any


class Answers:
    """The real stdout; what the systems themselves print is sent to stderr."""

    def __init__(self) -> None:
        self.file = os.dup(1)
        os.dup2(2, 1)

    def say(self, answer: dict[str, Any]) -> None:
        """One line of JSON."""
        os.write(self.file, (json.dumps(answer) + "\n").encode())


class Gate:
    """Where a worker waits until the clock starts."""

    def __init__(self, answers: Answers) -> None:
        self.answers = answers

    def wait(self) -> None:
        """Say that the worker is ready; return at "go". Closing stdin later means SIGTERM."""
        self.answers.say({"ready": True})
        # Not sys.stdin: a thread that waits inside it would keep the interpreter from ending.
        if not os.read(0, 64):
            sys.exit(0)
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self) -> None:
        """Until the harness lets go."""
        while os.read(0, 64):
            pass
        os.kill(os.getpid(), signal.SIGTERM)

    async def ready(self) -> asyncio.Event:
        """As `wait`; the event is set at SIGTERM."""
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        await asyncio.to_thread(self.wait)
        return stop
