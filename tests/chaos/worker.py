"""One worker process, as `duly worker` starts it: it stops at SIGTERM, and its clock may be wrong."""

from __future__ import annotations

from tests.chaos.clock import shift_from_environment

# Before the first import of the product. An isolated process imports this module too.
shift_from_environment()

import asyncio  # noqa: E402
import logging  # noqa: E402
import os  # noqa: E402
import signal  # noqa: E402
import sys  # noqa: E402
from datetime import timedelta  # noqa: E402

import psycopg  # noqa: E402

from duly.core.errors import StoreUnavailable  # noqa: E402
from tests.chaos.app import app  # noqa: E402
from tests.chaos.cluster_processes import STUCK  # noqa: E402
from tests.chaos.mutant import infect  # noqa: E402
from tests.chaos.pace import pause  # noqa: E402

CHOICES = {
    "slots": 40,
    "threads": 12,
    "isolated": 2,
    "poll": timedelta(seconds=0.5),
    "drain": timedelta(seconds=2),
    "cancel_grace": timedelta(seconds=2),
    "stop_grace": timedelta(seconds=1),
    "retries_per_second": 500.0,
    "retry_burst": 1000,
}


async def work(name: str) -> None:
    """Work until SIGTERM. Wait for the database at the start, as a supervisor would."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    while not stop.is_set():
        try:
            async with app, app.worker(name=name, when_stuck=lambda: os._exit(STUCK), **CHOICES):
                print("ready", flush=True)
                await stop.wait()
        except (psycopg.Error, StoreUnavailable) as error:
            logging.getLogger("chaos").warning("cannot start yet: %s", error)
            await pause(0.3, stop)
    sys.stdout.flush()
    # Do not wait for a thread whose handler never returns.
    os._exit(0)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    infect()
    asyncio.run(work(sys.argv[1]))
