"""The heartbeat: one small row per worker, on a thread and a connection that nothing else uses."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

import psycopg

from duly.db.sync_connection import abort_connection
from duly.worker import workers_store as workers
from duly.worker.settle_store import Key
from duly.worker.workers_store import HeldJobUpdate

log = logging.getLogger("duly.worker")
_RETRY_PAUSE = 1.0
_LOOP_CHECK_INTERVAL = 0.5
_MISSED = 2
"""Heartbeats that a worker may miss once its connection is gone."""
# A connection that leads nowhere must be noticed well within a lease.
_CONNECTION_TIMEOUTS: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class HeartbeatOwner(Protocol):
    """The worker whose lease the heartbeat renews. Its methods are called from the heartbeat's thread."""

    @property
    def worker_id(self) -> UUID:
        """The current id of the worker."""

    @property
    def draining(self) -> bool:
        """Whether the worker is about to stop."""

    def held(self) -> list[Key]:
        """Return the attempts that the worker holds."""

    def update_held(self, updates: Sequence[HeldJobUpdate]) -> None:
        """Apply lost leases and cancel requests of held jobs."""

    def request_drain(self) -> None:
        """Drain, because an operator requested it."""

    def declared_lost(self, worker_id: UUID) -> None:
        """Give up all jobs: the worker was silent for too long."""

    def check_loop(self) -> bool:
        """Check whether a handler blocks the event loop; return whether the loop is given up."""


class Heartbeat:
    """Beats until it is stopped and reconnects after a lost connection. A full pool does not affect it.

    If `direct`, its connection also marks the worker as present: it ends with the process and not before,
    however long none of the process's threads gets its turn.
    """

    def __init__(
        self, url: str, owner: HeartbeatOwner, every: timedelta, lease: timedelta, *, direct: bool = False
    ) -> None:
        self._url = url
        self._owner = owner
        self._every = every.total_seconds()
        self._lease = lease
        self._silence = _MISSED * every if direct else None
        self._present: UUID | None = None
        self._proven = False
        self._nudged = threading.Event()
        self._stopping = False
        self._conn: psycopg.Connection[tuple[object, ...]] | None = None
        self._busy_since: float | None = None
        self.beat_at = time.monotonic()
        """When the database last confirmed a heartbeat."""
        self._thread = threading.Thread(target=self._run, name="duly-heartbeat", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def nudge(self) -> None:
        """Beat now, without waiting for the interval."""
        self._nudged.set()

    def cut_off(self, timeout: float) -> None:
        """Close the connection of a heartbeat without an answer; called from another thread."""
        conn, since = self._conn, self._busy_since
        if conn is not None and since is not None and time.monotonic() - since > timeout:
            log.warning("heartbeat got no answer for %.1f s; closing its connection", timeout)
            abort_connection(conn)

    def stop(self) -> None:
        """Stop beating and wait for the thread."""
        self._stopping = True
        self._nudged.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stopping:
            # A worker whose loop stays blocked gets no heartbeat: then others take over its jobs.
            pause = self._every if self._loop_given_up() else self._try_beat()
            self._wait(pause)
        self._disconnect()

    def _loop_given_up(self) -> bool:
        try:
            return self._owner.check_loop()
        except Exception:
            log.exception("could not check the event loop")
            return False

    def _try_beat(self) -> float:
        """Beat; return the pause until the next try."""
        self._busy_since = time.monotonic()
        try:
            self._beat()
        except (psycopg.Error, OSError) as error:
            log.warning("heartbeat failed, retrying: %s", str(error).strip())
            return self._reconnect_pause()
        except Exception:
            log.exception("heartbeat failed, retrying")
            return self._reconnect_pause()
        finally:
            self._busy_since = None
        self._proven, self.beat_at = True, time.monotonic()
        return self._every

    def _reconnect_pause(self) -> float:
        """Disconnect; reconnect at once if the connection worked before, because the worker is absent now."""
        pause = 0.0 if self._proven else _RETRY_PAUSE
        self._disconnect()
        return pause

    def _beat(self) -> None:
        if self._conn is None or self._conn.closed:
            self._disconnect()
            self._conn = psycopg.connect(
                self._url, autocommit=True, prepare_threshold=None, **_CONNECTION_TIMEOUTS
            )
        owner = self._owner
        worker_id = owner.worker_id
        if self._silence is not None and self._present != worker_id:
            self._present = worker_id if workers.hold_presence(self._conn, worker_id) else None
        reply = workers.beat(
            self._conn,
            worker_id,
            owner.held(),
            draining=owner.draining,
            silence=self._silence if self._present == worker_id else None,
            lease=self._lease,
        )
        if reply is None:
            owner.declared_lost(worker_id)
            return
        if reply.updates:
            owner.update_held(reply.updates)
        if reply.drain:
            owner.request_drain()

    def _wait(self, pause: float) -> None:
        """Wait for the next beat or a nudge, checking the event loop meanwhile."""
        waited = 0.0
        while waited < pause and not self._nudged.wait(min(_LOOP_CHECK_INTERVAL, pause - waited)):
            waited += _LOOP_CHECK_INTERVAL
            self._loop_given_up()
        self._nudged.clear()

    def _disconnect(self) -> None:
        conn, self._conn = self._conn, None
        self._present, self._proven = None, False
        if conn is not None:
            conn.close()
