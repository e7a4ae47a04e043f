"""An observer process: reads through the same network as the others, and is blind while it is cut."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import psycopg

from duly.testing.history.observer import Observer
from duly.testing.history.recorder import Recorder

FULL = "disk.full"
"""Exists while the primary can be read but not written."""
_PAUSE = 0.1


def look_on(url: str, home: Path, name: str) -> None:
    """Observe until killed, through every outage."""
    observer, idle = Observer(name, Recorder(home / "observations.jsonl").write), threading.Event()
    while True:
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as conn:
                while not idle.wait(_PAUSE):
                    if (home / FULL).exists():
                        observer.interrupted()
                    observer.observe(conn)
        except psycopg.Error:
            observer.interrupted()
            idle.wait(_PAUSE)


if __name__ == "__main__":
    look_on(os.environ["DULY_CHAOS_WATCH_URL"], Path(os.environ["DULY_CHAOS_HOME"]), sys.argv[1])
