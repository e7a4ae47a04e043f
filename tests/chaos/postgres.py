"""A PostgreSQL cluster: a primary, a synchronous standby, and failover."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from duly.embedded.account import Account, is_refused_by_postgres, nobody_account
from duly.embedded.plan import find_bindir
from tests.chaos.disk import Disk
from tests.chaos.pace import tries
from tests.chaos.processes import children_of, start

PROGRAMS = ("initdb", "postgres", "pg_basebackup")
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "150",
    "shared_buffers": "96MB",
    "fsync": "on",
    "synchronous_commit": "on",
    "wal_level": "replica",
    "max_wal_senders": "6",
    "wal_keep_size": "256MB",
    "max_wal_size": "256MB",
    "checkpoint_timeout": "60s",
    "wal_retrieve_retry_interval": "200ms",
    "wal_receiver_status_interval": "1s",
    "dynamic_shared_memory_type": "mmap",  # in the data directory, which is removed with the run
    "log_line_prefix": "%m [%p] %q%u ",
}
_SYNC_FILE = "synchronous.conf"
READY_TIMEOUT = 60.0


class Missing(Exception):
    """A program that a run needs is not installed."""


class Programs:
    """Paths of the PostgreSQL programs, and the account that runs them."""

    def __init__(self) -> None:
        self.bindir = find_bindir()
        self.account = nobody_account() if is_refused_by_postgres() else Account()
        for name in PROGRAMS:
            if not os.access(self.bindir / name, os.X_OK):
                raise Missing(f"{self.bindir} has no {name}")
        if not (Path("/proc/self/task").exists()):
            raise Missing("processes are followed through /proc")

    def run(self, name: str, *arguments: str | Path, env: dict[str, str] | None = None) -> None:
        """Run a program to its end."""
        done = subprocess.run(
            [str(self.bindir / name), *map(str, arguments)],
            cwd="/",
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            user=self.account.uid,
            group=self.account.gid,
            extra_groups=self.account.groups,
            check=False,
        )
        if done.returncode:
            raise Missing(f"{name} failed: {done.stderr.strip()[-500:]}")


class Node:
    """One server with its own directory, and its own disk if mounting is possible."""

    def __init__(self, programs: Programs, home: Path, name: str, password: str, *, mounts: bool) -> None:
        self.name = name
        self.programs = programs
        self.log = home / f"{name}.log"
        self.path = home / name
        self.disk = Disk(self.path, programs.account) if mounts else None
        if self.disk is None:
            self.path.mkdir(0o700)
            programs.account.give(self.path)
        self.data, self.socket_dir = self.path / "data", self.path
        self._password = password
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> str:
        return str(self.socket_dir / ".s.PGSQL.5432")

    def dsn(self, user: str = "postgres", dbname: str = "duly") -> str:
        return f"host={self.socket_dir} port=5432 user={user} password={self._password} dbname={dbname}"

    def connect(self, dbname: str = "duly") -> psycopg.Connection[TupleRow]:
        """Connect as the superuser, bypassing the proxy."""
        return psycopg.connect(self.dsn(dbname=dbname), autocommit=True, connect_timeout=5)

    def ask(self, query: str, *values: Any, dbname: str = "duly") -> Any:
        """Return the first column of the first row."""
        with self.connect(dbname) as conn:
            row = conn.execute(query, values).fetchone()
        return row[0] if row else None

    def create(self) -> None:
        """Create a new cluster."""
        secret = self.path / "secret"
        secret.write_text(self._password)
        secret.chmod(0o600)
        if self.programs.account.uid is not None:
            os.chown(secret, self.programs.account.uid, self.programs.account.gid or 0)
        flags = ("--auth=scram-sha-256", "--username=postgres", "--encoding=UTF8", "--locale=C", "--no-sync")
        self.programs.run("initdb", *flags, f"--pwfile={secret}", "-D", self.data)
        self._configure()

    def copy(self, primary: Node) -> None:
        """Create a standby of another node by a base backup."""
        source = f"{primary.dsn(dbname='replication')} application_name={self.name}"
        flags = ("-R", "-X", "stream", "-c", "fast", "--no-sync")
        self.programs.run("pg_basebackup", "-d", source, "-D", self.data, *flags)
        self._configure()

    def _configure(self) -> None:
        settings = {**_SETTINGS, "unix_socket_directories": str(self.socket_dir)}
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        (self.data / "postgresql.conf").write_text("\n".join([*lines, f"include '{_SYNC_FILE}'", ""]))
        self._write_synchronous("")

    def _write_synchronous(self, names: str) -> None:
        (self.data / _SYNC_FILE).write_text(f"synchronous_standby_names = '{names}'\n")

    def be_synchronous(self, names: str) -> None:
        """Let commits wait for these standbys from now on; with none, do not wait."""
        self._write_synchronous(names)
        assert self.process is not None
        self.process.send_signal(signal.SIGHUP)

    def start(self) -> None:
        """Start the server, without waiting for it."""
        command = [self.programs.bindir / "postgres", "-D", self.data]
        self.process = start(command, self.log, account=self.programs.account, dies_by=signal.SIGQUIT)

    @property
    def runs(self) -> bool:
        return self.process is not None and self.process.poll() is None

    async def until_ready(self, dbname: str = "postgres", *, keep_alive: bool = False) -> None:
        """Wait until it accepts queries; with `keep_alive`, restart it if it exits."""
        async for _ in tries(READY_TIMEOUT):
            with suppress(psycopg.OperationalError):
                await asyncio.to_thread(self.ask, "select 1", dbname=dbname)
                return
            if not self.runs:
                if not keep_alive:
                    break
                self.start()
        raise RuntimeError(f"{self.name} is not ready; see {self.log}")

    def kill(self) -> None:
        """Send SIGKILL to the server and all its processes at once, as when the machine fails."""
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            # Stop it first, so that it starts no other process in between.
            self.process.send_signal(signal.SIGSTOP)
            for child in children_of(self.process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
            self.process.kill()
        self.process.wait()

    def backends(self) -> list[int]:
        """Return the processes that serve clients."""
        with self.connect() as conn:
            found = conn.execute(
                "select pid from pg_stat_activity where backend_type = 'client backend'"
                " and usename = 'app' order by backend_start, pid"
            ).fetchall()
        return [pid for (pid,) in found]

    def stop(self) -> None:
        """Stop it with a fast shutdown, or by force; leave nothing in the kernel."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.kill()
        self._forget_shared_memory()

    def _forget_shared_memory(self) -> None:
        """Remove the interlock of a killed server; a restart would do it, but there is none."""
        with suppress(OSError, ValueError, IndexError):
            found = re.split(r"\s+", (self.data / "postmaster.pid").read_text().splitlines()[6].strip())
            ctypes.CDLL(None).shmctl(int(found[1]), 0, None)


class Pair:
    """The primary and, while there is one, its synchronous standby."""

    def __init__(self, programs: Programs, home: Path, password: str, no_disks: str | None) -> None:
        self._programs = programs
        self._home = home
        self._password = password
        self.no_disks = no_disks
        """Why the nodes have no disks of their own, if they have none."""
        self._nodes: list[Node] = []
        self.primary = self._node()
        self.standby: Node | None = None

    def _node(self) -> Node:
        name = f"n{len(self._nodes) + 1}"
        node = Node(self._programs, self._home, name, self._password, mounts=self.no_disks is None)
        self._nodes.append(node)
        return node

    async def start(self) -> None:
        """Start the primary alone, with an empty database."""
        self.primary.create()
        self.primary.start()
        await self.primary.until_ready()
        with self.primary.connect("postgres") as conn:
            conn.execute("create database duly")

    async def add_standby(self) -> None:
        """Add a standby; commits wait for it as soon as it has caught up."""
        node = self._node()
        await asyncio.to_thread(node.copy, self.primary)
        node.start()
        await node.until_ready()
        await self._until("state = 'streaming'", node)
        self.primary.be_synchronous("*")
        await self._until("sync_state = 'sync'", node)
        # Earlier commits must have arrived as well.
        marked = self.primary.ask("select pg_current_wal_flush_lsn()")
        await self._until(f"flush_lsn >= '{marked}'", node)
        self.standby = node

    async def until_safe(self) -> bool:
        """Wait for the standby to catch up; return whether the primary may be lost."""
        if self.standby is None:
            return False
        await self._until("sync_state = 'sync' and flush_lsn >= pg_current_wal_flush_lsn()", self.standby)
        return True

    async def _until(self, condition: str, node: Node) -> None:
        question = (
            f"select exists (select from pg_stat_replication where application_name = %s and {condition})"
        )
        async for _ in tries(READY_TIMEOUT):
            with suppress(psycopg.OperationalError):
                if await asyncio.to_thread(self.primary.ask, question, node.name):
                    return
        raise RuntimeError(f"{node.name}: not {condition}; see {node.log}")

    async def promote(self) -> None:
        """Promote the standby; the old primary is gone for good."""
        assert self.standby is not None
        old, self.primary, self.standby = self.primary, self.standby, None
        await asyncio.to_thread(self.primary.ask, "select pg_promote(true, 60)", dbname="postgres")
        old.stop()
        shutil.rmtree(old.data, ignore_errors=True)

    def stop(self) -> None:
        for node in reversed(self._nodes):
            node.stop()
