"""The process that keeps PostgreSQL running while it has users, and stops it when it has none.

Started through `launch`, with its lock already held. It reports what is wrong before it detaches, so
that whoever started it hears of it at once.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from duly.devdb.cluster import Cluster
from duly.devdb.errors import DevdbError
from duly.devdb.locks import EXCLUSIVE, open_lock, try_lock
from duly.devdb.plan import Plan
from duly.devdb.prepare import prepare_cluster

_POLL = 0.25
_STEADY = 10.0
_LONGEST_PAUSE = 2.0
_LARGEST_LOG = 10 * 1024 * 1024


class Keeper:
    """Starts the server again whenever it ends, more slowly when it keeps ending."""

    def __init__(self, cluster: Cluster, log: int) -> None:
        self._cluster = cluster
        self._log = log
        self._pause = _POLL
        self._started = time.monotonic()
        self._postgres = cluster.start(log)

    def tend(self) -> None:
        """Start the server again if it has ended and the pause since its last start is over."""
        if os.fstat(self._log).st_size > _LARGEST_LOG:
            os.ftruncate(self._log, 0)
        lived = time.monotonic() - self._started
        if lived > _STEADY:
            self._pause = _POLL
        if self._postgres.poll() is not None and lived > self._pause:
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
            self._started = time.monotonic()
            self._postgres = self._cluster.start(self._log)

    def stop(self) -> None:
        """End the server, fast; by force if it does not heed."""
        for request, patience in ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
            self._postgres.send_signal(request)
            with suppress(subprocess.TimeoutExpired):
                self._postgres.wait(patience)
                return


def serve(plan: Plan, cluster: Cluster, log: int, users: int) -> None:
    """Keep the server until the users lock is free, which is when nobody holds a lease."""
    keeper: Keeper | None = None
    while not try_lock(users, EXCLUSIVE):
        if keeper is None:
            keeper = Keeper(cluster, log)
        keeper.tend()
        time.sleep(_POLL)
    if keeper is not None:
        keeper.stop()
    with suppress(OSError):
        plan.socket_dir.rmdir()
        plan.shelter.rmdir()


def _detach(log: int) -> None:
    if os.fork():
        os._exit(0)
    for stream in (1, 2):
        os.dup2(log, stream)


def main(argument: str, lock: int) -> None:
    """Prepare in sight of the starter, then serve out of it."""
    plan = Plan.loads(argument)
    os.set_inheritable(lock, False)
    users = open_lock(plan.users_lock)
    log = os.open(plan.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        cluster = prepare_cluster(plan)
    except (DevdbError, OSError) as error:
        sys.exit(str(error))
    _detach(log)
    serve(plan, cluster, log, users)
    # A user let in by the users lock must find this lock free already, and start a new supervisor.
    os.close(lock)
    os.close(users)
