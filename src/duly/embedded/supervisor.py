"""The process that runs PostgreSQL while any process holds a lease, and stops it afterwards.

Started by `launch`, with its lock already held. It reports errors before it detaches, so that its starter
receives them.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

from duly.embedded.cluster import PostgresCluster, prepare_cluster
from duly.embedded.directories import EXCLUSIVE, EmbeddedDatabaseError, open_lock, try_lock
from duly.embedded.plan import ServerPlan

_POLL_INTERVAL = 0.25
_STABLE_AFTER = 10.0
_MAX_RESTART_DELAY = 2.0
_MAX_LOG_BYTES = 10 * 1024 * 1024


class PostgresKeeper:
    """Restarts the server whenever it ends, with growing delays while it keeps ending."""

    def __init__(self, cluster: PostgresCluster, log: int) -> None:
        self._cluster = cluster
        self._log = log
        self._delay = _POLL_INTERVAL
        self._started = time.monotonic()
        self._postgres = cluster.start(log)

    def tend(self) -> None:
        """Restart the server if it has ended and the delay since its last start is over."""
        if os.fstat(self._log).st_size > _MAX_LOG_BYTES:
            os.ftruncate(self._log, 0)
        lived = time.monotonic() - self._started
        if lived > _STABLE_AFTER:
            self._delay = _POLL_INTERVAL
        if self._postgres.poll() is not None and lived > self._delay:
            self._delay = min(2 * self._delay, _MAX_RESTART_DELAY)
            self._started = time.monotonic()
            self._postgres = self._cluster.start(self._log)

    def stop(self) -> None:
        """Stop the server: fast, then immediately, then by SIGKILL."""
        for request, timeout in ((signal.SIGINT, 30.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0)):
            self._postgres.send_signal(request)
            with suppress(subprocess.TimeoutExpired):
                self._postgres.wait(timeout)
                return


def serve(plan: ServerPlan, cluster: PostgresCluster, log: int, users: int) -> None:
    """Run the server until the users lock is free, which means that no process holds a lease."""
    keeper: PostgresKeeper | None = None
    while not try_lock(users, EXCLUSIVE):
        if keeper is None:
            keeper = PostgresKeeper(cluster, log)
        keeper.tend()
        time.sleep(_POLL_INTERVAL)
    if keeper is not None:
        keeper.stop()
    with suppress(OSError):
        plan.socket_dir.rmdir()
        plan.fallback_dir.rmdir()


def _detach(log: int) -> None:
    if os.fork():
        os._exit(0)
    for stream in (1, 2):
        os.dup2(log, stream)


def main(argument: str, lock: int) -> None:
    """Prepare while the starter waits, then detach and serve."""
    plan = ServerPlan.loads(argument)
    os.set_inheritable(lock, False)
    users = open_lock(plan.users_lock)
    log = os.open(plan.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        cluster = prepare_cluster(plan)
    except (EmbeddedDatabaseError, OSError) as error:
        sys.exit(str(error))
    _detach(log)
    serve(plan, cluster, log, users)
    # A process that gets the users lock must find this lock free, and start a new supervisor.
    os.close(lock)
    os.close(users)
