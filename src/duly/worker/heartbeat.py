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

from duly.store import workers
from duly.store.sync import cut
from duly.store.work import Key
from duly.store.workers import News

log = logging.getLogger("duly.worker")
_AGAIN = 1.0
_MISSED = 2
"""So many heartbeats a worker may miss once its connection is gone."""
# A connection that leads nowhere must be noticed well within a lease.
_IMPATIENT: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
}


class Patient(Protocol):
    """Whose heart beats. Called from the heartbeat's thread."""

    @property
    def worker_id(self) -> UUID:
        """Who it is now."""

    @property
    def draining(self) -> bool:
        """Whether it is about to stop."""

    def held(self) -> list[Key]:
        """The attempts it holds."""

    def hear(self, news: Sequence[News]) -> None:
        """What became of them."""

    def asked_to_drain(self) -> None:
        """An operator wants it to end."""

    def declared_lost(self, worker_id: UUID) -> None:
        """It was silent for too long: it holds nothing any more."""

    def check_loop(self) -> bool:
        """Look whether something blocks the event loop; whether it is to be given up."""


class Heartbeat:
    """Beats until it is stopped; connects again when it was cut off. A full pool does not touch it.

    Its connection also makes the worker present, if it is `direct`: it ends with the process, and not before,
    however long none of the process's threads gets its turn.
    """

    def __init__(
        self, url: str, patient: Patient, every: timedelta, lease: timedelta, *, direct: bool = False
    ) -> None:
        self._url = url
        self._patient = patient
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
        """When the last beat was heard."""
        self._thread = threading.Thread(target=self._run, name="duly-heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat."""
        self._thread.start()

    def nudge(self) -> None:
        """Beat now: there may be news."""
        self._nudged.set()

    def cut_off(self, patience: float) -> None:
        """End a beat that gets no answer; called from another thread."""
        conn, since = self._conn, self._busy_since
        if conn is not None and since is not None and time.monotonic() - since > patience:
            log.warning("a heartbeat gets no answer; its connection is cut off")
            cut(conn)

    def stop(self) -> None:
        """Stop beating and wait for the thread."""
        self._stopping = True
        self._nudged.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        while not self._stopping:
            # A patient who does not come round is left alone: without heartbeats its jobs go to others.
            pause = self._every if self._given_up() else self._attempt()
            self._wait(pause)
        self._disconnect()

    def _given_up(self) -> bool:
        try:
            return self._patient.check_loop()
        except Exception:
            log.exception("the event loop could not be looked after")
            return False

    def _attempt(self) -> float:
        self._busy_since = time.monotonic()
        try:
            self._beat()
        except (psycopg.Error, OSError) as error:
            log.warning("no heartbeat, trying again: %s", str(error).strip())
            return self._given_another_try()
        except Exception:
            log.exception("no heartbeat, trying again")
            return self._given_another_try()
        finally:
            self._busy_since = None
        self._proven, self.beat_at = True, time.monotonic()
        return self._every

    def _given_another_try(self) -> float:
        """At once if the connection was good before: meanwhile the worker is absent."""
        pause = 0.0 if self._proven else _AGAIN
        self._disconnect()
        return pause

    def _beat(self) -> None:
        if self._conn is None or self._conn.closed:
            self._disconnect()
            self._conn = psycopg.connect(self._url, autocommit=True, prepare_threshold=None, **_IMPATIENT)
        patient = self._patient
        who = patient.worker_id
        if self._silence is not None and self._present != who:
            self._present = who if workers.attend(self._conn, who) else None
        heard = workers.beat(
            self._conn,
            who,
            patient.held(),
            draining=patient.draining,
            silence=self._silence if self._present == who else None,
            lease=self._lease,
        )
        if heard is None:
            patient.declared_lost(who)
            return
        if heard.news:
            patient.hear(heard.news)
        if heard.drain:
            patient.asked_to_drain()

    def _wait(self, pause: float) -> None:
        """Wait for the next beat or a nudge, and look after the loop meanwhile."""
        waited = 0.0
        while waited < pause and not self._nudged.wait(min(0.5, pause - waited)):
            waited += 0.5
            self._given_up()
        self._nudged.clear()

    def _disconnect(self) -> None:
        conn, self._conn = self._conn, None
        self._present, self._proven = None, False
        if conn is not None:
            conn.close()
