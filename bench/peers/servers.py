"""The stores: one PostgreSQL for all with the same settings, and a durable Redis."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from bench.peers.processes import cpu_seconds, parent_of

from duly.embedded import open_server

POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "15min",
    "max_connections": "300",
}
REDIS_SETTINGS = {"appendonly": "yes", "appendfsync": "everysec", "save": ""}
STARTS_WITHIN = 10.0


class Postgres:
    """The server that every system on PostgreSQL uses, each with its own database."""

    def __init__(self, home: Path) -> None:
        self.server = open_server(home, options=POSTGRES_SETTINGS)
        self.conn: psycopg.Connection[Any] = psycopg.connect(self.server.dsn(), autocommit=True)
        self.postmaster = parent_of(int(self.one("select pg_backend_pid()")))

    def one(self, query: str) -> Any:
        """Return the only value of a query."""
        row = self.conn.execute(query).fetchone()
        return row[0] if row else None

    @property
    def version(self) -> str:
        """The version, such as 18.6."""
        return str(self.one("show server_version"))

    def fresh(self, name: str, template: str = "template1") -> str:
        """Create a new database of that name; return its URL."""
        self.drop(name)
        self.conn.execute(f'create database "{name}" template "{template}"')
        return self.server.dsn(name)

    def drop(self, name: str) -> None:
        """Drop it, and disconnect its clients."""
        self.conn.execute(f'drop database if exists "{name}" with (force)')

    def settle(self) -> None:
        """Flush dirty buffers, so that no measurement pays for another."""
        self.conn.execute("checkpoint")

    def wal_bytes(self) -> int:
        """Return the bytes of WAL written so far."""
        return int(self.one("select pg_current_wal_insert_lsn() - '0/0'::pg_lsn"))

    def cpu_seconds(self) -> float:
        """Return the CPU time of the server and its backends so far."""
        return cpu_seconds(self.postmaster)

    def close(self) -> None:
        """Stop the server."""
        self.conn.close()
        self.server.wait_until_stopped()


class Redis:
    """A server on a free port of the loopback interface."""

    def __init__(self, home: Path) -> None:
        program = shutil.which("redis-server")
        assert program is not None
        home.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        flags = [part for name, value in REDIS_SETTINGS.items() for part in (f"--{name}", value)]
        with (home / "log").open("wb") as log:
            self.process = subprocess.Popen(
                [program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(home), *flags],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.wait_until_ready()
        except BaseException:
            self.close()
            raise

    @staticmethod
    def is_here() -> bool:
        """Whether the program is installed."""
        return shutil.which("redis-server") is not None

    @property
    def url(self) -> str:
        """The URL of its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def version(self) -> str:
        """The version, such as 7.0.15."""
        found = [line for line in self.ask("INFO server").splitlines() if line.startswith("redis_version:")]
        return found[0].partition(":")[2].strip()

    def ask(self, words: str) -> str:
        """Send one command; return the raw answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(f"{words}\r\n".encode())
            answer = client.recv(65536)
            while answer.startswith(b"$") and len(answer) < int(answer[1:].split(b"\r\n", 1)[0]):
                answer += client.recv(65536)
            return answer.decode()

    def wait_until_ready(self) -> None:
        """Wait until this server answers, and not another one that took the port first."""
        deadline = time.monotonic() + STARTS_WITHIN
        while time.monotonic() < deadline and self.process.poll() is None:
            with suppress(OSError):
                if f"process_id:{self.process.pid}\r" in self.ask("INFO server"):
                    return
            time.sleep(0.05)
        raise RuntimeError("redis-server did not start")

    def fresh(self) -> str:
        """Empty it; return its URL."""
        self.ask("FLUSHALL")
        return self.url

    def cpu_seconds(self) -> float:
        """Return the CPU time so far."""
        return cpu_seconds(self.process.pid)

    def close(self) -> None:
        """Stop the server."""
        self.process.terminate()
        self.process.wait()
