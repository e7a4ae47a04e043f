"""DBOS: workflows of one step, on a queue."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Sequence
from typing import Any

import psycopg
import sqlalchemy
from bench.peers.adapters._common import BlockingAdapter, Gate, board, postgres, run
from dbos import DBOS, DBOSClient  # type: ignore[import-not-found]

QUEUE = "bench"
POLL = 0.1
CONNECTIONS = 20
BATCH = 500


async def noop(value: int) -> None:
    """Do nothing."""
    board.noop()


async def stamp(value: int) -> None:
    """Record the latency."""
    board.stamp(value)


async def slow(value: int) -> None:
    """Take one second."""
    board.slow(value)
    await asyncio.sleep(1)


def address() -> str:
    """The database, as SQLAlchemy wants it for psycopg 3."""
    return postgres().replace("postgresql://", "postgresql+psycopg://")


class Peer(BlockingAdapter):
    """Workflows sent by a client."""

    name = "DBOS"
    package = "dbos"
    settings = (
        f"polling every {POLL} s, pool of {CONNECTIONS}, no limit of concurrency; "
        f"bulk: {BATCH} calls of enqueue_in_transaction in a transaction"
    )
    persists = "workflow row with inputs, output and status"

    def make(self) -> None:
        """The application of a worker."""
        DBOS(
            config={
                "name": "bench",
                "system_database_url": postgres(),
                "sys_db_pool_size": CONNECTIONS,
                "application_version": "bench",
                "executor_id": f"worker-{os.environ.get('BENCH_SLOT', '0')}",
                "log_level": "WARNING",
                "run_admin_server": False,
            }
        )
        for handler in (noop, stamp, slow):
            DBOS.workflow(name=handler.__name__)(handler)

    def prepare(self) -> None:
        """Launching makes the schema."""
        self.make()
        DBOS.launch()
        DBOS.register_queue(QUEUE, polling_interval_sec=POLL)
        DBOS.destroy()
        self.empty()

    def empty(self) -> None:
        """Delete all workflows."""
        with psycopg.connect(postgres(), autocommit=True) as conn:
            conn.execute("truncate dbos.workflow_status cascade")

    def open(self) -> None:
        """Connect."""
        self.client: Any = DBOSClient(system_database_url=postgres(), system_database_pool_size=CONNECTIONS)
        self.engine = sqlalchemy.create_engine(address())
        self.watching = psycopg.connect(postgres(), autocommit=True)

    def close(self) -> None:
        """Disconnect."""
        self.watching.close()
        self.engine.dispose()
        self.client.destroy()

    def options(self, kind: str) -> dict[str, str]:
        """What is enqueued, and where."""
        return {"workflow_name": kind, "queue_name": QUEUE, "app_version": "bench"}

    def send(self, kind: str, value: int) -> None:
        """Make one call."""
        self.client.enqueue(self.options(kind), value)

    def send_many(self, kind: str, values: Sequence[int]) -> None:
        """Many calls in a transaction."""
        options = self.options(kind)
        for start in range(0, len(values), BATCH):
            with self.engine.begin() as conn:
                for value in values[start : start + BATCH]:
                    self.client.enqueue_in_transaction(conn, options, value)

    def left(self) -> int:
        """Count the queued and running jobs."""
        row = self.watching.execute(
            "select count(*) from dbos.workflow_status where status in ('ENQUEUED', 'PENDING', 'DELAYED')"
        ).fetchone()
        return int(row[0]) if row else 0

    def work(self, slots: int, gate: Gate) -> None:
        """One executor."""
        self.make()
        # Its threads start later and inherit this mask: only the wait below receives the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        gate.wait()
        DBOS.launch()
        signal.sigwait({signal.SIGTERM})
        DBOS.destroy()


if __name__ == "__main__":
    run(Peer())
